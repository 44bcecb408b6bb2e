import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

const STALE_CLASS = 'crush-stale';
const NOTE_CLASS = 'crush-stale-note';

/** Marks the cells in one view of a notebook that ran with other cells above them. */
export class StaleMarks implements IDisposable {
  constructor(options: StaleMarks.IOptions) {
    this._options = options;
    options.notebook.model?.cells.changed.connect(this._onCellsChanged, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Take all marks away. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    this._options.notebook.widgets.forEach(Private.unmark);
  }

  /** Mark the cells with these ids, and no others. */
  show(ids: ReadonlySet<string>): void {
    this._ids = ids;
    this._update();
  }

  /** A cell that moved is drawn anew, without its mark, once all have heard of it. */
  private _onCellsChanged(): void {
    queueMicrotask(() => this._update());
  }

  private _update(): void {
    const { notebook, label, explanation } = this._options;
    if (this._isDisposed || notebook.isDisposed) {
      return;
    }
    for (const cell of notebook.widgets) {
      if (!this._ids.has(cell.model.id)) {
        Private.unmark(cell);
      } else if (!cell.hasClass(STALE_CLASS)) {
        Private.mark(cell, label, explanation);
      }
    }
  }

  private readonly _options: StaleMarks.IOptions;
  private _ids: ReadonlySet<string> = new Set();
  private _isDisposed = false;
}

export namespace StaleMarks {
  export interface IOptions {
    readonly notebook: Notebook;
    /** What stands below a stale cell, translated. */
    readonly label: string;
    /** What that means, in a sentence, translated. */
    readonly explanation: string;
  }
}

namespace Private {
  let notes = 0;

  export function mark(
    { node }: Cell<ICellModel>,
    label: string,
    explanation: string
  ): void {
    const note = document.createElement('div');
    note.className = NOTE_CLASS;
    note.id = `${NOTE_CLASS}-${notes++}`;
    note.textContent = label;
    note.title = explanation;
    node.classList.add(STALE_CLASS);
    node.setAttribute('aria-describedby', note.id);
    // Last, since Lumino finds the place of a part by its number.
    node.append(note);
  }

  export function unmark({ node }: Cell<ICellModel>): void {
    if (node.classList.contains(STALE_CLASS)) {
      node.classList.remove(STALE_CLASS);
      node.removeAttribute('aria-describedby');
      node.querySelector(`:scope > .${NOTE_CLASS}`)?.remove();
    }
  }
}
