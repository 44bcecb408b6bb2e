import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import type { ICrushNotebooks } from './tokens';

/**
 * Knows which notebooks have a Crush kernel, by what the kernel says of itself.
 *
 * A kernelspec can have any name, so the name is not asked. A notebook that loses its
 * kernel stays what it was until it gets another one: its transcript still reads the same.
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
    const kernel = Private.kernelOf(panel);
    if (!kernel) {
      return;
    }
    const isCrush = await Private.isCrush(kernel);
    if (panel.isDisposed || kernel !== Private.kernelOf(panel)) {
      return;
    }
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

namespace Private {
  export function kernelOf(
    panel: NotebookPanel
  ): Kernel.IKernelConnection | null {
    return panel.sessionContext.session?.kernel ?? null;
  }

  export async function isCrush(
    kernel: Kernel.IKernelConnection
  ): Promise<boolean> {
    try {
      return (await kernel.info).implementation.startsWith('crush');
    } catch {
      // The kernel died before it answered; its successor is asked in turn.
      return false;
    }
  }
}
