import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { METADATA_KEY } from './protocol';
import { isObject } from './untrusted';

/** Return what `model` keeps of ours, a copy; nothing if it is no object. */
export function readMetadata(
  model: ICellModel | INotebookModel
): ReadonlyPartialJSONObject | null {
  const value: unknown = model.getMetadata(METADATA_KEY);
  return isObject(value) ? value : null;
}

/**
 * Let `model` keep `record`, or nothing of ours.
 *
 * Undo does not take it back, since it is no edit of the user's. A record that is kept
 * already does not make the notebook dirty.
 */
export function writeMetadata(
  model: ICellModel | INotebookModel,
  record: ReadonlyPartialJSONObject | null
): void {
  model.sharedModel.transact(() => {
    if (record === null) {
      model.deleteMetadata(METADATA_KEY);
    } else {
      model.setMetadata(METADATA_KEY, record);
    }
  }, false);
}
