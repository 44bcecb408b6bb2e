import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { NotebookSessions } from './sessions';
import { ICrushNotebooks } from './tokens';

/** Let a Crush notebook keep its session, and show what its kernel knows. */
export const sessionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'crush-kernel:session',
  description: 'Keeps what the kernel knows in the notebook, and shows it.',
  autoStart: true,
  requires: [ICrushNotebooks, INotebookTracker],
  optional: [ITranslator, IDocumentManager],
  activate: (
    _: JupyterFrontEnd,
    notebooks: ICrushNotebooks,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    documents: IDocumentManager | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('crush_kernel');
    let sessions: NotebookSessions | null = null;
    const load = async () => {
      const module = await import('./sessions');
      return (sessions ??= new module.NotebookSessions({
        stale: trans.__(
          'The cells above have changed since this ran: run it again to refresh it'
        ),
        staleExplanation: trans.__(
          'A cell above was added, removed, moved or run again since this one ran.'
        ),
        steer: trans.__('Add a message to this turn…'),
        send: trans.__('Send'),
        discard: trans.__('Discard'),
        unsent: trans.__('Not sent: the turn was over.')
      }));
    };
    const add = async (panel: NotebookPanel) => (await load()).add(panel);
    const remove = async (panel: NotebookPanel) => (await load()).remove(panel);

    notebooks.changed.connect(
      (_, { panel, isCrush }) => void (isCrush ? add(panel) : remove(panel))
    );
    tracker
      .filter(panel => notebooks.has(panel))
      .forEach(panel => void add(panel));
    // While its kernel starts, so that the kernel hears of the cells before one is run.
    tracker.widgetAdded.connect(() => void load());
    NotebookActions.executionScheduled.connect((_, { notebook }) => {
      const session = sessions?.get(notebook);
      session?.tellCells();
      if (documents?.autosave) {
        session?.save();
      }
    });
  }
};

/** Show the text of a question that nobody can answer any more, in place of its widget. */
export const deadWidgetsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'crush-kernel:dead-widgets',
  description: 'Replaces widgets whose Crush kernel is gone by their text.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_: JupyterFrontEnd, tracker: INotebookTracker): void => {
    const watch = async ({ context }: NotebookPanel) => {
      const { buryWithoutKernel } = await import('./deadwidgets');
      await buryWithoutKernel(context);
    };
    tracker.forEach(panel => void watch(panel));
    tracker.widgetAdded.connect((_, panel) => void watch(panel));
  }
};
