import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Announcer } from './announcer';
// eslint-disable-next-line jupyter/prefer-lazy-imports -- a key that is pressed early counts
import { PermissionCards } from './cards';
import { ICrushNotebooks } from './tokens';

namespace CommandIDs {
  export const focusPermission = 'crush-kernel:focus-permission';
}

/** Let permission cards be answered by keyboard, and speak to screen readers. */
export const permissionKeysPlugin: JupyterFrontEndPlugin<void> = {
  id: 'crush-kernel:permission-keys',
  description: 'Answers permission cards by keyboard and announces them.',
  autoStart: true,
  requires: [ICrushNotebooks, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    notebooks: ICrushNotebooks,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('crush_kernel');
    const announcer = new Announcer();
    const cards = new Map<NotebookPanel, PermissionCards>();

    const watch = (panel: NotebookPanel) => {
      cards.set(
        panel,
        new PermissionCards({
          node: panel.content.node,
          label: trans.__('Permission question'),
          formLabel: trans.__('Question'),
          reasonLabel: trans.__('Reason'),
          announce: text => announcer.say(text),
          refocus: () => panel.content.activate()
        })
      );
      panel.disposed.connect(unwatch, panel);
    };
    const unwatch = (panel: NotebookPanel) => {
      cards.get(panel)?.dispose();
      cards.delete(panel);
    };

    notebooks.changed.connect((_, { panel, isCrush }) =>
      isCrush ? watch(panel) : unwatch(panel)
    );
    tracker
      .filter(panel => notebooks.has(panel))
      .forEach(panel => watch(panel));

    NotebookActions.executed.connect((_, { notebook, success }) => {
      const panel = tracker.find(({ content }) => content === notebook);
      if (panel && notebooks.has(panel)) {
        announcer.say(
          success ? trans.__('Turn done') : trans.__('Turn failed')
        );
      }
    });

    // On the window, since JupyterLab's shortcuts listen on the document.
    window.addEventListener('keydown', PermissionCards.onKeydown, true);

    app.commands.addCommand(CommandIDs.focusPermission, {
      label: trans.__('Go to the Permission Question'),
      caption: trans.__('Focus the card of this notebook that waits for you'),
      describedBy: { args: { type: 'object', properties: {} } },
      isEnabled: () =>
        tracker.currentWidget !== null && cards.has(tracker.currentWidget),
      execute: () => {
        const panel = tracker.currentWidget;
        if (panel && !cards.get(panel)?.focusFirst()) {
          announcer.say(trans.__('Nothing waits for you in this notebook'));
        }
      }
    });
    palette?.addItem({
      command: CommandIDs.focusPermission,
      category: trans.__('Crush')
    });
  }
};
