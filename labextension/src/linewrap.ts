import type { Notebook } from '@jupyterlab/notebook';

/**
 * Wraps the lines of code cells, since a prompt is prose.
 *
 * The notebook's own editor configuration is changed, so that cells which are not yet
 * drawn, and cells made later, wrap too.
 */
export class LineWrap {
  /** Wrap the cells of `notebook`; does nothing if they wrap already. */
  enable(notebook: Notebook): void {
    const wraps = Boolean(notebook.editorConfig.code.lineWrap);
    if (!wraps) {
      this._before.set(notebook, wraps);
      Private.setWrap(notebook, true);
    }
  }

  /** Give `notebook` back the setting it had before `enable`. */
  restore(notebook: Notebook): void {
    const wraps = this._before.get(notebook);
    if (wraps !== undefined) {
      this._before.delete(notebook);
      Private.setWrap(notebook, wraps);
    }
  }

  private readonly _before = new WeakMap<Notebook, boolean>();
}

namespace Private {
  export function setWrap(notebook: Notebook, lineWrap: boolean): void {
    const config = notebook.editorConfig;
    notebook.editorConfig = { ...config, code: { ...config.code, lineWrap } };
  }
}
