import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { LineWrap } from './linewrap';
import { CrushNotebooks } from './notebooks';
import { showMarkdownInOrder } from './orderedmarkdown';
import { ICrushNotebooks } from './tokens';

const CRUSH_CLASS = 'crush-notebook';

const TRACKER_PLUGIN_ID = '@jupyterlab/notebook-extension:tracker';

/** Mark the notebooks that have a Crush kernel, and show their prompts and replies well. */
export const notebookPlugin: JupyterFrontEndPlugin<ICrushNotebooks> = {
  id: 'crush-kernel:notebook',
  description:
    'Marks Crush notebooks, wraps the lines of their cells, and keeps streaming text in order.',
  autoStart: true,
  provides: ICrushNotebooks,
  requires: [INotebookTracker],
  optional: [ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    settings: ISettingRegistry | null
  ): ICrushNotebooks => {
    const notebooks = new CrushNotebooks();
    const lineWrap = new LineWrap();
    notebooks.changed.connect((_, { panel, isCrush }) => {
      panel.toggleClass(CRUSH_CLASS, isCrush);
      if (isCrush) {
        lineWrap.enable(panel.content);
        showMarkdownInOrder(panel.content.rendermime);
      } else {
        lineWrap.restore(panel.content);
      }
    });
    tracker.forEach(panel => void notebooks.add(panel));
    tracker.widgetAdded.connect((_, panel) => void notebooks.add(panel));
    if (settings) {
      void Private.onNotebookSettings(app, settings, () => {
        tracker.forEach(panel => Private.wrapAgain(panel, notebooks, lineWrap));
      });
    }
    return notebooks;
  }
};

namespace Private {
  /**
   * Call `apply` after JupyterLab has given all notebooks changed settings.
   *
   * It replaces their editor configuration then, and ours with it.
   */
  export async function onNotebookSettings(
    app: JupyterFrontEnd,
    settings: ISettingRegistry,
    apply: () => void
  ): Promise<void> {
    await app.restored;
    if (TRACKER_PLUGIN_ID in settings.plugins) {
      const plugin = await settings.load(TRACKER_PLUGIN_ID);
      plugin.changed.connect(() => queueMicrotask(apply));
    }
  }

  export function wrapAgain(
    panel: NotebookPanel,
    notebooks: ICrushNotebooks,
    lineWrap: LineWrap
  ): void {
    if (notebooks.has(panel)) {
      lineWrap.enable(panel.content);
    }
  }
}
