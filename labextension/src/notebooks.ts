import type { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { isCrush, isNamedCrush, kernelOf } from './crushkernel';
import type { ICrushNotebooks } from './tokens';

/**
 * Knows which notebooks have a Crush kernel, by what the kernel says of itself; until it has
 * started, by its name.
 *
 * A notebook that loses its kernel stays what it was until it gets another one: its
 * transcript still reads the same.
 */
export class CrushNotebooks implements ICrushNotebooks {
  get changed(): ISignal<ICrushNotebooks, ICrushNotebooks.IChange> {
    return this._changed;
  }

  has(panel: NotebookPanel): boolean {
    return this._panels.has(panel);
  }

  /** Watch the kernel of `panel` for as long as the panel lives. */
  async add(panel: NotebookPanel): Promise<void> {
    const update = () => this._update(panel);
    panel.sessionContext.kernelChanged.connect(update, panel);
    panel.disposed.connect(() => this._panels.delete(panel), panel);
    await update();
  }

  private async _update(panel: NotebookPanel): Promise<void> {
    const kernel = kernelOf(panel.sessionContext);
    if (!kernel) {
      return;
    }
    if (isNamedCrush(kernel)) {
      this._set(panel, true);
    }
    const answer = await isCrush(kernel);
    if (!panel.isDisposed && kernel === kernelOf(panel.sessionContext)) {
      this._set(panel, answer);
    }
  }

  private _set(panel: NotebookPanel, isCrush: boolean): void {
    if (isCrush !== this._panels.has(panel)) {
      if (isCrush) {
        this._panels.add(panel);
      } else {
        this._panels.delete(panel);
      }
      this._changed.emit({ panel, isCrush });
    }
  }

  private readonly _panels = new Set<NotebookPanel>();
  private readonly _changed = new Signal<
    ICrushNotebooks,
    ICrushNotebooks.IChange
  >(this);
}
