import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';

/** Whether `cell` is a code cell: one that has outputs. */
export function isCode(cell: ICellModel): cell is ICodeCellModel {
  return cell.type === 'code';
}

/** Return the code cells of `model`, from top to bottom. */
export function codeCells(model: INotebookModel): ICodeCellModel[] {
  return [...model.cells].filter(isCode);
}

/** Return the cell of `model` that has `id`, if there is one. */
export function findCell(
  model: INotebookModel,
  id: string
): ICellModel | undefined {
  return [...model.cells].find(cell => cell.id === id);
}
