import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { queueSaves } from './savequeue';
import { ScrollKeeper } from './scrollkeeper';
import { NotebookSession } from './session';
import { StaleMarks } from './stale';
import { SteeringBox } from './steering';

/** Has one session for each open Crush notebook, and marks in each view of it. */
export class NotebookSessions {
  constructor(labels: NotebookSessions.ILabels) {
    this._labels = labels;
  }

  /** Give the notebook of `panel` a session once it is loaded; idempotent. */
  async add(panel: NotebookPanel): Promise<void> {
    if (this._views.has(panel)) {
      return;
    }
    this._views.set(panel, null);
    panel.disposed.connect(this.remove, this);
    await panel.context.ready;
    if (this._views.get(panel) === null) {
      queueSaves(panel.context);
      const session =
        this._sessionOf(panel.context) ?? new NotebookSession(panel.context);
      this._views.set(panel, this._show(panel.content, session));
    }
  }

  /** Forget `panel`; its session ends with the last view of its notebook. */
  remove(panel: NotebookPanel): void {
    const view = this._views.get(panel);
    this._views.delete(panel);
    if (view) {
      view.marks.dispose();
      view.scroll.dispose();
      view.box.dispose();
      if (!this._sessionOf(panel.context)) {
        view.session.dispose();
      }
    }
  }

  /** Return the session of `notebook`, `null` if it has none. */
  get(notebook: Notebook): NotebookSession | null {
    for (const [panel, view] of this._views) {
      if (panel.content === notebook) {
        return view?.session ?? null;
      }
    }
    return null;
  }

  private _show(notebook: Notebook, session: NotebookSession): Private.IView {
    const marks = new StaleMarks({
      notebook,
      label: this._labels.stale,
      explanation: this._labels.staleExplanation
    });
    const scroll = new ScrollKeeper(notebook);
    const box = new SteeringBox({
      notebook,
      labels: this._labels,
      say: (cellId, text) => session.say(cellId, text),
      refocus: () => notebook.activate()
    });
    marks.show(session.stale);
    session.staleChanged.connect(() => marks.show(session.stale), marks);
    session.painting.connect((_, cells) => scroll.follow(cells), scroll);
    box.show(session.steering);
    session.steeringChanged.connect(() => box.show(session.steering), box);
    return { session, marks, scroll, box };
  }

  private _sessionOf(
    context: NotebookPanel['context']
  ): NotebookSession | null {
    for (const [panel, view] of this._views) {
      if (view && panel.context === context) {
        return view.session;
      }
    }
    return null;
  }

  private readonly _labels: NotebookSessions.ILabels;
  private readonly _views = new Map<NotebookPanel, Private.IView | null>();
}

export namespace NotebookSessions {
  /** Texts, translated. */
  export interface ILabels extends SteeringBox.ILabels {
    /** What stands below a stale cell. */
    readonly stale: string;
    /** What that means, in a sentence. */
    readonly staleExplanation: string;
  }
}

namespace Private {
  /** What a panel has once its notebook is loaded. */
  export interface IView {
    readonly session: NotebookSession;
    readonly marks: StaleMarks;
    readonly scroll: ScrollKeeper;
    readonly box: SteeringBox;
  }
}
