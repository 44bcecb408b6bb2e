import type { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

/** What the plugins use of a notebook panel, with real signals and a kernel to switch. */
export class FakePanel {
  /** Give the panel a kernel that answers `implementation`, or fails, or none. */
  setKernel(
    implementation: string | Error | Promise<string> | null,
    name = 'python3'
  ): void {
    this._kernel =
      implementation === null
        ? null
        : { name, info: Private.info(implementation) };
    this._kernelChanged.emit(undefined);
  }

  dispose(): void {
    this.isDisposed = true;
    this._disposed.emit(undefined);
    Signal.clearData(this);
  }

  asPanel(): NotebookPanel {
    return this as unknown as NotebookPanel;
  }

  isDisposed = false;

  get disposed() {
    return this._disposed;
  }

  get sessionContext() {
    return {
      kernelChanged: this._kernelChanged,
      session: { kernel: this._kernel }
    };
  }

  private _kernel: Private.IKernel | null = null;
  private readonly _disposed = new Signal<FakePanel, undefined>(this);
  private readonly _kernelChanged = new Signal<FakePanel, undefined>(this);
}

namespace Private {
  export interface IKernel {
    readonly name: string;
    readonly info: Promise<{ implementation: string }>;
  }

  export async function info(implementation: string | Error | Promise<string>) {
    if (implementation instanceof Error) {
      throw implementation;
    }
    return { implementation: await implementation };
  }
}

/** Wait until all that can happen without an outside event has happened. */
export async function settled(): Promise<void> {
  await new Promise(resolve => setTimeout(resolve));
}
