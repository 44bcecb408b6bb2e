import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { IOutputAreaModel } from '@jupyterlab/outputarea';
import type { IOutputModel } from '@jupyterlab/rendermime';
import { JSONExt } from '@lumino/coreutils';
import type { IPicture } from './protocol';

/**
 * Shows in cells what this page missed, and follows cells that were started elsewhere.
 *
 * A cell that this page runs gets its outputs as JupyterLab brings them; it is left alone.
 */
export class Repaint {
  /** Whether `show` would do anything: `cell` differs, and this page does not run it. */
  isDue(cell: ICodeCellModel, picture: IPicture): boolean {
    return (
      !this.isRunByPage(cell) &&
      (cell.executionState !== Private.stateOf(picture) ||
        cell.executionCount !== picture.executionCount ||
        (picture.isRunning && !cell.trusted) ||
        !Private.isSame(cell.outputs, picture.outputs))
    );
  }

  /** Show `picture` in `cell`, changing only what differs; does nothing if it is not due. */
  show(cell: ICodeCellModel, picture: IPicture): void {
    if (!this.isDue(cell, picture)) {
      return;
    }
    this._isPainting = true;
    try {
      Private.paintOutputs(cell, picture.outputs);
      if (picture.isRunning) {
        this._follow(cell);
      } else {
        this._unfollow(cell);
      }
      cell.executionCount = picture.executionCount;
      // Last, since a number makes the cell idle.
      cell.executionState = Private.stateOf(picture);
    } finally {
      this._isPainting = false;
    }
  }

  /** Whether `cell` runs, and this page started it. */
  isRunByPage(cell: ICodeCellModel): boolean {
    return cell.executionState === 'running' && !this._followed.has(cell);
  }

  /** Give up the cells that were followed: the kernel that ran them is gone. */
  stop(cells: Iterable<ICodeCellModel>): void {
    for (const cell of cells) {
      if (this._followed.has(cell)) {
        this._unfollow(cell);
        cell.executionState = 'idle';
      }
    }
  }

  private _follow(cell: ICodeCellModel): void {
    if (!this._followed.has(cell)) {
      this._followed.add(cell);
      cell.stateChanged.connect(this._onStateChanged, this);
    }
    // As JupyterLab trusts what a cell shows while it runs: all of it is from the kernel.
    cell.trusted = true;
  }

  private _unfollow(cell: ICellModel): void {
    this._followed.delete(cell);
    cell.stateChanged.disconnect(this._onStateChanged, this);
  }

  /** A followed cell that is started here is no longer ours to paint. */
  private _onStateChanged(cell: ICellModel, change: { name: string }): void {
    if (change.name === 'executionState' && !this._isPainting) {
      this._unfollow(cell);
    }
  }

  private _isPainting = false;
  private readonly _followed = new WeakSet<ICellModel>();
}

namespace Private {
  export function stateOf({ isRunning }: IPicture): 'running' | 'idle' {
    return isRunning ? 'running' : 'idle';
  }

  export function isSame(
    outputs: IOutputAreaModel,
    values: readonly nbformat.IOutput[]
  ): boolean {
    return (
      outputs.length === values.length &&
      values.every((value, index) => isEqual(outputs.get(index), value))
    );
  }

  export function paintOutputs(
    cell: ICodeCellModel,
    values: readonly nbformat.IOutput[]
  ): void {
    const { outputs } = cell;
    if (outputs.length !== values.length && hasStream(outputs, values)) {
      // The model appends to the last stream that it was given, which may have been replaced.
      outputs.fromJSON([...values]);
      return;
    }
    values.forEach((value, index) => {
      if (index >= outputs.length) {
        outputs.add(value);
      } else if (!isEqual(outputs.get(index), value)) {
        outputs.set(index, value);
      }
    });
    if (outputs.length > values.length) {
      // Removing from `outputs` would leave them in the shared model, which is what is saved.
      cell.sharedModel.updateOutputs(values.length, outputs.length, []);
    }
  }

  function isEqual(output: IOutputModel, value: nbformat.IOutput): boolean {
    return JSONExt.deepEqual(output.toJSON(), value);
  }

  function hasStream(
    outputs: IOutputAreaModel,
    values: readonly nbformat.IOutput[]
  ): boolean {
    return [...outputs.toJSON(), ...values].some(
      ({ output_type }) => output_type === 'stream'
    );
  }
}
