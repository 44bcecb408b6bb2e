import type { ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

/** How long after a cell was painted its height may change: Markdown is rendered later. */
const SETTLE_MS = 1000;

/**
 * Keeps what is on the screen in its place while cells above it are painted.
 *
 * JupyterLab turns the browser's own scroll anchoring off for all cells but the active one.
 */
export class ScrollKeeper implements IDisposable {
  constructor(notebook: Notebook) {
    this._notebook = notebook;
    this._observer = new ResizeObserver(entries => this._onResize(entries));
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    this._observer.disconnect();
  }

  /** Follow the heights of `cells` for a moment: they are about to be painted. */
  follow(cells: ReadonlySet<ICellModel>): void {
    // Where only the cells on the screen are drawn, JupyterLab follows them itself.
    if (
      this._isDisposed ||
      this._notebook.notebookConfig.windowingMode === 'full'
    ) {
      return;
    }
    const until = performance.now() + SETTLE_MS;
    for (const { node } of this._notebook.widgets.filter(({ model }) =>
      cells.has(model)
    )) {
      const height = node.offsetHeight;
      // A notebook that is hidden has no heights, and its cells do not grow when it is shown.
      if (height > 0) {
        this._followed.set(node, { until, height });
        this._observer.observe(node);
      }
    }
  }

  private _onResize(entries: readonly ResizeObserverEntry[]): void {
    const scroller = this._notebook.outerNode;
    const top = scroller.getBoundingClientRect().top;
    let growth = 0;
    for (const { target } of entries) {
      const node = target as HTMLElement;
      const followed = this._followed.get(node);
      const height = node.offsetHeight;
      if (!followed || height === 0 || performance.now() > followed.until) {
        this._followed.delete(node);
        this._observer.unobserve(node);
        continue;
      }
      const change = height - followed.height;
      followed.height = height;
      const wasAbove =
        node.getBoundingClientRect().bottom - growth - change <= top;
      if (wasAbove) {
        growth += change;
      }
    }
    if (growth !== 0) {
      scroller.scrollTop += growth;
    }
  }

  private readonly _notebook: Notebook;
  private readonly _observer: ResizeObserver;
  private readonly _followed = new WeakMap<HTMLElement, Private.IFollowed>();
  private _isDisposed = false;
}

namespace Private {
  export interface IFollowed {
    /** Until when, as `performance.now()` has it. */
    readonly until: number;
    /** As it was last, in pixels. */
    height: number;
  }
}
