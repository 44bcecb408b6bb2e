import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import plugins from '../index';
import { deadWidgetsPlugin, sessionPlugin } from '../persistence';
import { NotebookSessions } from '../sessions';
import type { ICrushNotebooks } from '../tokens';
import {
  FakeContext,
  FakeKernel,
  codeCell,
  display,
  notebookOf
} from './fakecontext';
import { settled } from './fakepanel';

const LABELS = {
  stale: 'Run again',
  staleExplanation: 'Why.',
  steer: 'Add a message',
  send: 'Send',
  discard: 'Discard',
  unsent: 'Not sent.'
};

/** A view of a notebook, with a widget for each of its cells. */
class FakeView {
  constructor(readonly context: FakeContext) {
    this.content = {
      isDisposed: false,
      model: context.model,
      widgets: [...context.model.cells].map(model =>
        Object.assign(new Widget(), { model })
      )
    };
  }

  readonly content;
  readonly disposed = new Signal<this, void>(this);

  asPanel(): NotebookPanel {
    return this as unknown as NotebookPanel;
  }
}

function contextOf(): FakeContext {
  return new FakeContext(
    notebookOf(['a', 'b'].map(id => codeCell(id))),
    new FakeKernel()
  );
}

function commsOf({ sessionContext }: FakeContext) {
  return sessionContext.kernel!.comms;
}

async function added(...views: FakeView[]): Promise<NotebookSessions> {
  const sessions = new NotebookSessions(LABELS);
  for (const view of views) {
    void sessions.add(view.asPanel());
    void sessions.add(view.asPanel());
  }
  await settled();
  return sessions;
}

test('two notebooks have a session each', async () => {
  const [one, other] = [new FakeView(contextOf()), new FakeView(contextOf())];
  const sessions = await added(one, other);
  one.context.model.sharedModel.deleteCell(0);
  other.context.model.sharedModel.deleteCell(0);

  sessions.get(other.asPanel().content)?.tellCells();

  expect(commsOf(one.context)).toHaveLength(1);
  expect(commsOf(one.context)[0].sent).toEqual([]);
  expect(commsOf(other.context)[0].sent).toHaveLength(1);
});

test('two views of a notebook share a session, and both show what is stale', async () => {
  const context = contextOf();
  const views = [new FakeView(context), new FakeView(context)];
  const sessions = await added(...views);
  const [comm] = commsOf(context);

  comm.hear({ method: 'stale', cells: ['b'] });

  expect(commsOf(context)).toHaveLength(1);
  for (const { content } of views) {
    expect(content.widgets[1].node.textContent).toBe('Run again');
  }

  views[0].disposed.emit();
  expect(comm.isClosed).toBe(false);
  sessions.remove(views[1].asPanel());
  expect(comm.isClosed).toBe(true);
  expect(views[1].content.widgets[1].node.textContent).toBe('');
});

test('a notebook that is closed before it is loaded gets no session', async () => {
  const view = new FakeView(contextOf());
  const sessions = new NotebookSessions(LABELS);

  const adding = sessions.add(view.asPanel());
  view.disposed.emit();
  await adding;
  await settled();

  expect(commsOf(view.context)).toEqual([]);
});

test('removing what was never there does nothing', async () => {
  const sessions = await added();

  expect(() =>
    sessions.remove(new FakeView(contextOf()).asPanel())
  ).not.toThrow();
});

describe('the plugin', () => {
  function activated(...open: FakeView[]) {
    const notebooks = {
      changed: new Signal<object, ICrushNotebooks.IChange>({}),
      has: (panel: NotebookPanel) => open.includes(panel as never)
    };
    const tracker = {
      widgetAdded: new Signal<object, NotebookPanel>({}),
      filter: (isWanted: (panel: NotebookPanel) => boolean) =>
        open.map(view => view.asPanel()).filter(isWanted)
    };
    void sessionPlugin.activate(
      {} as never,
      notebooks as unknown as ICrushNotebooks,
      tracker as unknown as INotebookTracker,
      null
    );
    return { notebooks, tracker };
  }

  test('is part of the extension', () => {
    expect(plugins).toContain(sessionPlugin);
  });

  test('follows notebooks from the moment that they are Crush, and no longer', async () => {
    const view = new FakeView(contextOf());
    const panel = view.asPanel();
    const { notebooks, tracker } = activated();
    tracker.widgetAdded.emit(panel);
    await settled();
    expect(commsOf(view.context)).toEqual([]);

    notebooks.changed.emit({ panel, isCrush: true });
    await settled();
    expect(commsOf(view.context)).toHaveLength(1);

    notebooks.changed.emit({ panel, isCrush: false });
    await settled();
    expect(commsOf(view.context)[0].isClosed).toBe(true);
  });

  test('a notebook that changes its mind at once ends as it said last', async () => {
    const view = new FakeView(contextOf());
    const { notebooks } = activated();

    for (const isCrush of [true, false, true]) {
      notebooks.changed.emit({ panel: view.asPanel(), isCrush });
    }
    await settled();

    expect(commsOf(view.context).filter(comm => !comm.isClosed)).toHaveLength(
      1
    );
  });

  test('finds notebooks that were open before it', async () => {
    const view = new FakeView(contextOf());

    activated(view);
    await settled();

    expect(commsOf(view.context)).toHaveLength(1);
  });

  test('tells the cells before JupyterLab runs one', async () => {
    const view = new FakeView(contextOf());
    activated(view);
    await settled();
    view.context.model.sharedModel.deleteCell(0);

    (NotebookActions.executionScheduled as Signal<object, object>).emit({
      notebook: view.content,
      cell: view.content.widgets[1]
    });

    expect(commsOf(view.context)[0].sentOf('cells')).toHaveLength(1);
  });
});

test('widgets without a kernel are buried in notebooks that are open, and in later ones', async () => {
  const pending = display(
    {
      'text/markdown': 'bash wants to run',
      'application/vnd.jupyter.widget-view+json': { model_id: 'm1' }
    },
    { crush: { pending: true } }
  );
  const [early, late] = [0, 1].map(
    () =>
      new FakeView(
        new FakeContext(notebookOf([codeCell('a', { outputs: [pending] })]))
      )
  );
  const tracker = {
    widgetAdded: new Signal<object, NotebookPanel>({}),
    forEach: (visit: (panel: NotebookPanel) => void) => visit(early.asPanel())
  };

  void deadWidgetsPlugin.activate(
    {} as never,
    tracker as unknown as INotebookTracker
  );
  tracker.widgetAdded.emit(late.asPanel());
  await settled();

  for (const { context } of [early, late]) {
    expect(JSON.stringify(context.model.toJSON())).not.toContain('widget-view');
    expect(JSON.stringify(context.model.toJSON())).toContain('wants to run');
  }
});

test('each view offers to steer the turn that runs, and sends what is typed', async () => {
  const context = contextOf();
  const views = [new FakeView(context), new FakeView(context)];
  await added(...views);
  const [comm] = commsOf(context);
  const boxes = () =>
    views.flatMap(({ content }) =>
      content.widgets.map(({ node }) => node.querySelectorAll('form').length)
    );

  comm.hear({ method: 'steering', cell_id: 'b', is_open: true });
  expect(boxes()).toEqual([0, 1, 0, 1]);
  const form = views[0].content.widgets[1].node.querySelector('form')!;
  form.querySelector('input')!.value = 'Use a branch.';
  form.requestSubmit();
  expect(comm.sentOf('say')).toEqual([
    { method: 'say', cell_id: 'b', text: 'Use a branch.' }
  ]);

  comm.hear({ method: 'steering', cell_id: 'a', is_open: false });
  expect(boxes()).toEqual([0, 1, 0, 1]);
  comm.hear({ method: 'steering', cell_id: 'b', is_open: false });
  expect(boxes()).toEqual([0, 0, 0, 0]);
});

test('nothing is offered any more once the kernel is gone', async () => {
  const context = contextOf();
  const view = new FakeView(context);
  await added(view);
  commsOf(context)[0].hear({ method: 'steering', cell_id: 'b', is_open: true });

  context.restart();
  await settled();

  expect(view.content.widgets[1].node.querySelector('form')).toBeNull();
});
