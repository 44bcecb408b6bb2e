import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { codeCells } from './cells';
import { isCrush, kernelOf } from './crushkernel';
import { METADATA_KEY } from './protocol';
import { isObject } from './untrusted';

const WIDGET_MIME_TYPE = 'application/vnd.jupyter.widget-view+json';

/**
 * Take the widgets out of those outputs of `cells` that wait for an answer.
 *
 * Their kernel is gone, and without it a widget shows an error in place of the text that the
 * output has for readers without widgets.
 */
export function buryWidgets(cells: Iterable<ICodeCellModel>): void {
  for (const { outputs } of cells) {
    for (let index = 0; index < outputs.length; index++) {
      const output = outputs.get(index);
      if (Private.isPending(output.metadata)) {
        outputs.set(index, Private.buried(output.toJSON()));
      }
    }
  }
}

/**
 * Bury the widgets of a notebook while it has no kernel, or one that is not Crush, for as
 * long as it is open. To look at a notebook is no change: it does not become dirty.
 */
export async function buryWithoutKernel(
  context: NotebookPanel['context']
): Promise<void> {
  const { sessionContext, model } = context;
  const update = async () => {
    const kernel = kernelOf(sessionContext);
    if (kernel && (await isCrush(kernel))) {
      return;
    }
    if (!model.isDisposed && kernel === kernelOf(sessionContext)) {
      const { dirty } = model;
      buryWidgets(codeCells(model));
      if (!dirty && !model.collaborative) {
        model.dirty = false;
      }
    }
  };
  await Promise.all([context.ready, sessionContext.ready]);
  sessionContext.kernelChanged.connect(update, model);
  await update();
}

namespace Private {
  export function isPending(metadata: ReadonlyPartialJSONObject): boolean {
    const ours = metadata[METADATA_KEY];
    return isObject(ours) && ours.pending === true;
  }

  /** Return `output` without its widget and without the mark that it waits. */
  export function buried(output: nbformat.IOutput): nbformat.IOutput {
    const data = { ...(output.data as nbformat.IMimeBundle) };
    delete data[WIDGET_MIME_TYPE];
    const metadata = { ...(output.metadata as nbformat.OutputMetadata) };
    const ours = { ...(metadata[METADATA_KEY] as nbformat.OutputMetadata) };
    delete ours.pending;
    if (Object.keys(ours).length > 0) {
      metadata[METADATA_KEY] = ours;
    } else {
      delete metadata[METADATA_KEY];
    }
    return { ...output, data, metadata };
  }
}
