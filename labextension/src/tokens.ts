import type { NotebookPanel } from '@jupyterlab/notebook';
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

/** The open notebooks whose kernel is Crush. */
export interface ICrushNotebooks {
  /** Whether the kernel of `panel` is Crush, as far as is known now. */
  has(panel: NotebookPanel): boolean;

  /** Emitted when a notebook gets a Crush kernel, or another one in its place. */
  readonly changed: ISignal<ICrushNotebooks, ICrushNotebooks.IChange>;
}

export namespace ICrushNotebooks {
  export interface IChange {
    readonly panel: NotebookPanel;
    readonly isCrush: boolean;
  }
}

export const ICrushNotebooks = new Token<ICrushNotebooks>(
  'crush-kernel:ICrushNotebooks',
  'The open notebooks whose kernel is Crush.'
);
