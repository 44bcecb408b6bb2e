import type { ICellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import { findCell, isCode } from './cells';
import type { ICellEdit, IShownCell, Refusal } from './protocol';

/**
 * How many characters of sources go into one message: Jupyter Server ends the connection
 * where a message has more than 10 MiB, and a character takes six bytes at most.
 */
const BATCH_CHARS = 1_500_000;

/** About as many characters as a cell has in a message beside its source. */
const CELL_CHARS = 150;

/** Return the cells as they are now, from top to bottom, divided into messages. */
export function shownCells(
  model: INotebookModel,
  batchChars = BATCH_CHARS
): IShownCell[][] {
  let batch: IShownCell[] = [];
  let room = batchChars;
  const batches = [batch];
  for (const cell of model.cells) {
    const shown = Private.shownCell(cell, batchChars);
    const size = shown.source.length + CELL_CHARS;
    if (size > room && batch.length > 0) {
      batch = [];
      room = batchChars;
      batches.push(batch);
    }
    room -= size;
    batch.push(shown);
  }
  return batches;
}

/**
 * Change one cell as the kernel asks, in one step of the notebook's own undo.
 *
 * Nothing changes where the answer is a reason to refuse it: the cell may have been edited,
 * run or deleted since the kernel has looked.
 */
export function applyEdit(
  model: INotebookModel,
  edit: ICellEdit
): Refusal | null {
  const refusal = Private.refusalOf(model, edit);
  if (refusal === null) {
    const { sharedModel } = model;
    const { undoManager } = sharedModel as { undoManager?: IUndoManager };
    // What the user did a moment ago is a step of its own, and so is what comes next.
    undoManager?.stopCapturing();
    sharedModel.transact(() => Private.apply(model, edit));
    undoManager?.stopCapturing();
  }
  return refusal;
}

/** What is used of Yjs's; the shared model's type does not tell of it. */
interface IUndoManager {
  stopCapturing(): void;
}

namespace Private {
  export function shownCell(cell: ICellModel, maxChars: number): IShownCell {
    const isCodeCell = isCode(cell);
    return {
      id: cell.id,
      type: cell.type,
      // No message could hold more of it.
      source: cell.sharedModel.getSource().slice(0, maxChars),
      outputs: isCodeCell ? cell.outputs.length : 0,
      execution_count: isCodeCell ? cell.executionCount : null,
      is_busy: isBusy(cell)
    };
  }

  export function refusalOf(
    model: INotebookModel,
    edit: ICellEdit
  ): Refusal | null {
    const isAfterKnown =
      !('after' in edit) || edit.after === '' || findCell(model, edit.after);
    const cell = findCell(model, edit.cellId);
    if (edit.action === 'insert') {
      return cell ? 'taken' : isAfterKnown ? null : 'unknown';
    }
    if (!cell || !isAfterKnown) {
      return 'unknown';
    }
    if (isBusy(cell)) {
      return 'busy';
    }
    if ('former' in edit && cell.sharedModel.getSource() !== edit.former) {
      return 'changed';
    }
    return isLocked(cell, edit) ? 'locked' : null;
  }

  export function apply(model: INotebookModel, edit: ICellEdit): void {
    const { sharedModel } = model;
    const index = indexOf(model, edit.cellId);
    switch (edit.action) {
      case 'insert':
        sharedModel.insertCell(indexOf(model, edit.after) + 1, {
          cell_type: edit.cellType,
          id: edit.cellId,
          source: edit.source,
          metadata: {}
        });
        return;
      case 'replace':
        return replace(model, index, edit.cellType, edit.source);
      case 'delete':
        // JupyterLab tells the kernel of them with the next request.
        model.deletedCells.push(edit.cellId);
        sharedModel.deleteCell(index);
        return;
      case 'move': {
        const above = indexOf(model, edit.after);
        const to = above < index ? above + 1 : above;
        if (to !== index) {
          sharedModel.moveCell(index, to);
        }
      }
    }
  }

  /** A cell of another type is another cell, as where the user changes the type. */
  function replace(
    model: INotebookModel,
    index: number,
    cellType: nbformat.CellType,
    source: string
  ): void {
    const cell = model.cells.get(index);
    if (cell.type === cellType) {
      cell.sharedModel.setSource(source);
      return;
    }
    const { id, metadata, attachments } = cell.toJSON();
    // Whether outputs are trusted: there are none.
    const kept: nbformat.ICell['metadata'] = { ...metadata };
    delete kept.trusted;
    model.sharedModel.deleteCell(index);
    model.sharedModel.insertCell(index, {
      cell_type: cellType,
      id: id as string,
      source,
      metadata: kept,
      ...(attachments && cellType !== 'code' ? { attachments } : {})
    });
  }

  /** Where the cell is that has `id`; -1 of none, which is above the first. */
  function indexOf(model: INotebookModel, id: string): number {
    return [...model.cells].findIndex(cell => cell.id === id);
  }

  /** Whether `cell` runs or waits to be run. */
  function isBusy(cell: ICellModel): boolean {
    return isCode(cell) && cell.executionState === 'running';
  }

  function isLocked(cell: ICellModel, { action }: ICellEdit): boolean {
    return (
      (action === 'replace' && cell.getMetadata('editable') === false) ||
      (action === 'delete' && cell.getMetadata('deletable') === false)
    );
  }
}
