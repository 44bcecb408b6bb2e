import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookModel } from '@jupyterlab/notebook';
import { NotebookSession } from '../session';
import {
  FakeContext,
  FakeKernel,
  codeCell,
  display,
  notebookOf
} from './fakecontext';
import { settled } from './fakepanel';

const TURN = { version: 1, turn: 'a.1', revision: 3 };
const HEADER = { version: 1, id: 's1', title: 'A title' };
const WIDGET = 'application/vnd.jupyter.widget-view+json';

const text = display({ 'text/markdown': 'text' });
const pending = display(
  { 'text/markdown': 'text', [WIDGET]: { model_id: 'm' } },
  { crush: { pending: true } }
);

interface IOpened {
  model: NotebookModel;
  context: FakeContext;
  kernel: FakeKernel;
  session: NotebookSession;
}

async function attached(context: FakeContext): Promise<NotebookSession> {
  const session = new NotebookSession(context.asContext());
  await settled();
  return session;
}

/** Open a notebook with the cells a, b and c. */
async function opened(
  kernel: FakeKernel | null = new FakeKernel(),
  options: NotebookModel.IOptions = {}
): Promise<IOpened> {
  const model = notebookOf(
    ['a', 'b', 'c'].map(id => codeCell(id)),
    options
  );
  const context = new FakeContext(model, kernel);
  const session = await attached(context);
  return { model, context, kernel: kernel!, session };
}

function cellOf(model: NotebookModel, index: number): ICodeCellModel {
  return model.cells.get(index) as ICodeCellModel;
}

function pictureOf(cell_id: string, rest: object = {}): object {
  return {
    cell_id,
    outputs: [text],
    execution_count: 1,
    is_running: false,
    ...rest
  };
}

describe('the comm', () => {
  test('is opened once, with the path, the header and the cells', async () => {
    const model = notebookOf([codeCell('a', { metadata: { crush: TURN } })]);
    model.setMetadata('crush', HEADER);
    const context = new FakeContext(model, new FakeKernel());
    const session = attached(context);
    context.setStatus('idle');
    context.setStatus('busy');
    await session;
    context.setStatus('idle');
    await settled();

    const { comms } = context.sessionContext.kernel!;
    expect(comms.map(({ opening }) => opening)).toEqual([
      {
        version: 1,
        path: 'folder/notebook.ipynb',
        notebook: HEADER,
        cells: [{ id: 'a', type: 'code', execution_count: null, crush: TURN }],
        is_headless: false,
        edits: true
      }
    ]);
    expect(comms[0].sent).toEqual([]);
  });

  test('is opened before the kernel has answered where its name tells what it is', () => {
    const kernel = new FakeKernel(new Promise(() => undefined), 'crush');
    const context = new FakeContext(notebookOf([codeCell('a')]), kernel);
    const session = new NotebookSession(context.asContext());

    expect(kernel.comms).toHaveLength(1);
    context.setConnection('connected');
    expect(kernel.comms).toHaveLength(1);
    session.dispose();
  });

  test('is opened without a path and a header where there are none', async () => {
    const model = notebookOf([codeCell('a')]);
    const context = new FakeContext(model, new FakeKernel());
    context.path = '';
    await attached(context);

    expect(context.sessionContext.kernel?.comm.opening).toMatchObject({
      path: null,
      notebook: null
    });
  });

  test('is opened when a kernel comes', async () => {
    const { context } = await opened(null);
    const kernel = new FakeKernel();

    context.setKernel(kernel);
    await settled();

    expect(kernel.comms).toHaveLength(1);
  });

  test('is not opened to another kind of kernel', async () => {
    const { context, kernel } = await opened(new FakeKernel('ipython'));
    context.setStatus('idle');
    await settled();

    expect(kernel.comms).toEqual([]);
  });

  test('is opened anew after a restart, once', async () => {
    const { context, kernel } = await opened();

    context.restart();
    await settled();

    expect(kernel.comms).toHaveLength(2);
    expect(kernel.comm.opening).toEqual(kernel.comms[0].opening);
  });

  test('is not opened to the old process while the kernel restarts', async () => {
    const { context, kernel } = await opened();
    context.setStatus('restarting');
    kernel.clear();
    context.setStatus('idle');
    context.setConnection('connecting');
    context.setStatus('busy');
    expect(kernel.comms).toHaveLength(1);

    context.setConnection('connected');
    expect(kernel.comms).toHaveLength(2);
  });

  test('is opened anew where a restart failed', async () => {
    const { context, kernel } = await opened();
    context.setStatus('restarting');
    kernel.clear();

    context.setKernel(kernel);

    expect(kernel.comms).toHaveLength(2);
  });

  test('is opened after a restart before anything can be sent after it', async () => {
    const { context, kernel } = await opened();
    context.setStatus('restarting');
    kernel.clear();
    context.setConnection('connecting');

    context.setConnection('connected');

    expect(kernel.comms).toHaveLength(2);
  });

  test.each([
    ['answers', 'status', { msg_id: 'm1' }],
    ['says that it is there', 'iopub_welcome', {}]
  ])('is opened anew when another process %s', async (_, type, parent) => {
    const { context, kernel, model } = await opened();
    cellOf(model, 0).outputs.add(pending);
    context.hear('process-0');
    kernel.comm.hear({ method: 'ready', kernel: 'k1' }, 'process-1');
    cellOf(model, 0).outputs.set(0, pending);
    context.hear('server', 'status', {});
    context.hear('process-1');
    expect(kernel.comms).toHaveLength(1);

    context.hear('process-2', type, parent);
    context.hear('process-2');
    await settled();

    expect(kernel.comms).toHaveLength(2);
    expect(cellOf(model, 0).outputs.toJSON()).toEqual([text]);
  });

  test('is not opened twice where the old process speaks late', async () => {
    const { context, kernel } = await opened();
    kernel.comm.hear({ method: 'ready', kernel: 'k1' }, 'process-1');

    context.restart();
    context.hear('process-1');
    context.hear('process-2');
    kernel.comm.hear({ method: 'ready', kernel: 'k2' }, 'process-2');
    context.hear('process-2');
    await settled();

    expect(kernel.comms).toHaveLength(2);
  });

  test('goes to the kernel that replaces another', async () => {
    const { context, kernel } = await opened();
    const next = new FakeKernel();

    context.setKernel(next);
    await settled();

    expect(kernel.comms).toHaveLength(1);
    expect(next.comms).toHaveLength(1);
  });

  test('is not opened to a kernel that was replaced before it answered', async () => {
    let answer: (name: string) => void = () => undefined;
    const slow = new FakeKernel(new Promise(resolve => (answer = resolve)));
    const { context } = await opened(slow);
    const next = new FakeKernel();
    context.setKernel(next);

    answer('crush');
    await settled();

    expect(slow.comms).toEqual([]);
    expect(next.comms).toHaveLength(1);
  });

  test('is opened anew where the connection was lost', async () => {
    const { context, kernel } = await opened();
    const [first] = kernel.comms;

    context.setConnection('connecting');
    context.setConnection('connected');
    context.setStatus('busy');
    await settled();

    expect(kernel.comms).toHaveLength(2);
    expect(first.isClosed).toBe(true);
    first.hear({ method: 'turn', cell_id: 'a', record: TURN });
    expect(first.sent).toEqual([]);
  });

  test('that the kernel closes is not opened again until it restarts', async () => {
    const { context, kernel } = await opened();
    kernel.comm.isDisposed = true;
    kernel.comm.onClose({});

    context.setStatus('busy');
    context.setStatus('idle');
    await settled();
    expect(kernel.comms).toHaveLength(1);

    context.restart();
    await settled();
    expect(kernel.comms).toHaveLength(2);
  });

  test('is missed where a connection can have none', async () => {
    const kernel = new FakeKernel();
    kernel.hasComms = false;
    const { context, model } = await opened(kernel);
    context.setStatus('idle');
    model.sharedModel.deleteCell(0);
    await settled();

    expect(kernel.comms).toEqual([]);
  });

  test('is closed with the notebook, and nothing is told after it', async () => {
    const { context, kernel, model, session } = await opened();
    model.sharedModel.deleteCell(0);

    session.dispose();
    session.dispose();
    context.setStatus('idle');
    context.restart();
    context.rename('other.ipynb');
    void context.save();
    await settled();

    expect(session.isDisposed).toBe(true);
    expect(kernel.comms).toHaveLength(1);
    expect(kernel.comm.isClosed).toBe(true);
    expect(kernel.comm.sent).toEqual([]);
  });

  test('needs no closing where the kernel went first', async () => {
    const { kernel, session } = await opened();
    kernel.isDisposed = true;

    expect(() => session.dispose()).not.toThrow();
  });
});

describe('the list of cells', () => {
  test('is told once for all that happens at once', async () => {
    const { kernel, model } = await opened();

    model.sharedModel.insertCell(0, codeCell('d'));
    model.sharedModel.moveCell(1, 3);
    model.sharedModel.deleteCell(1);
    expect(kernel.comm.sent).toEqual([]);
    await settled();

    expect(kernel.comm.sent).toEqual([
      {
        method: 'cells',
        cells: [
          { id: 'd', type: 'code', execution_count: null },
          { id: 'c', type: 'code' },
          { id: 'a', type: 'code' }
        ]
      }
    ]);
  });

  test('is told at once before a cell is run, and not a second time', async () => {
    const { kernel, model, session } = await opened();
    model.sharedModel.deleteCell(1);

    session.tellCells();

    expect(kernel.comm.sentOf('cells')).toHaveLength(1);
    await settled();
    expect(kernel.comm.sentOf('cells')).toHaveLength(1);
    session.tellCells();
    expect(kernel.comm.sentOf('cells')).toHaveLength(1);
  });

  test('is told with the next opening where there is no comm', async () => {
    const { context, model } = await opened(null);
    model.sharedModel.deleteCell(1);
    await settled();
    const kernel = new FakeKernel();

    context.setKernel(kernel);
    await settled();

    expect(kernel.comm.opening?.cells).toEqual([
      { id: 'a', type: 'code', execution_count: null },
      { id: 'c', type: 'code', execution_count: null }
    ]);
    expect(kernel.comm.sent).toEqual([]);
  });

  test('of a notebook that is too big for one message is told in several', async () => {
    const long = 'x'.repeat(1_500_000);
    const model = notebookOf(
      ['a', 'b', 'c'].map(id =>
        codeCell(id, { metadata: { crush: { turn: id, revision: 1, long } } })
      )
    );
    const kernel = new FakeKernel();
    await attached(new FakeContext(model, kernel));

    expect(kernel.comm.opening?.cells).toHaveLength(1);
    expect(
      kernel.comm.sentOf('cells').map(({ cells }) => (cells as object[]).length)
    ).toEqual([2, 3]);
    for (const message of [kernel.comm.opening, ...kernel.comm.sent]) {
      expect(JSON.stringify(message).length).toBeLessThan(3_000_000);
    }
  });
});

describe('a turn', () => {
  test('is kept with its cell, and acknowledged', async () => {
    const { kernel, model } = await opened();

    kernel.comm.hear({ method: 'turn', cell_id: 'b', record: TURN });

    expect(model.cells.get(1).getMetadata('crush')).toEqual(TURN);
    expect(kernel.comm.sent).toEqual([
      { method: 'ack', cell_id: 'b', turn: 'a.1', revision: 3 }
    ]);
  });

  test('is taken away', async () => {
    const { kernel, model } = await opened();
    kernel.comm.hear({ method: 'turn', cell_id: 'b', record: TURN });

    kernel.comm.hear({ method: 'turn', cell_id: 'b', record: null });

    expect(model.cells.get(1).getMetadata('crush')).toBeUndefined();
    expect(kernel.comm.sentOf('ack')[1]).toEqual({
      method: 'ack',
      cell_id: 'b',
      turn: null,
      revision: null
    });
  });

  test('of a cell that is not there is ignored', async () => {
    const { kernel, model } = await opened();

    kernel.comm.hear({ method: 'turn', cell_id: 'gone', record: TURN });

    expect(kernel.comm.sent).toEqual([]);
    expect(model.dirty).toBe(false);
  });

  test('that is not one is ignored, and what follows is not', async () => {
    const { kernel } = await opened();

    kernel.comm.hear({ method: 'turn', cell_id: 'a', record: [] });
    kernel.comm.hear('nonsense');
    kernel.comm.hear({ method: 'turn', cell_id: 'a', record: TURN });

    expect(kernel.comm.sentOf('ack')).toHaveLength(1);
  });

  test('is told back only with a cell that is new', async () => {
    const { kernel, model } = await opened();
    kernel.comm.hear({ method: 'turn', cell_id: 'a', record: TURN });

    model.sharedModel.moveCell(0, 2);
    await settled();
    expect(JSON.stringify(kernel.comm.sentOf('cells'))).not.toContain('crush');

    model.sharedModel.clearUndoHistory();
    model.sharedModel.deleteCell(2);
    await settled();
    model.sharedModel.undo();
    await settled();
    expect(kernel.comm.sentOf('cells').at(-1)).toMatchObject({
      cells: [{ id: 'b' }, { id: 'c' }, { id: 'a', crush: TURN }]
    });
  });
});

test('the header is kept with the notebook, and acknowledged', async () => {
  const { kernel, model } = await opened();

  kernel.comm.hear({ method: 'session', record: HEADER, revision: 4 });

  expect(model.getMetadata('crush')).toEqual(HEADER);
  expect(kernel.comm.sent).toEqual([{ method: 'ack', session: 4 }]);
});

test('a new path is told', async () => {
  const { context, kernel } = await opened();

  context.rename('folder/other.ipynb');

  expect(kernel.comm.sent).toEqual([
    { method: 'path', path: 'folder/other.ipynb' }
  ]);
});

test('a cell whose earlier run comes back says what it said then', async () => {
  const { kernel, model } = await opened();
  const [a, b] = [...model.cells].map(({ sharedModel }) => sharedModel);

  kernel.comm.hear({
    method: 'turn',
    cell_id: 'a',
    record: TURN,
    source: 'As it ran.'
  });

  expect(a.getSource()).toBe('As it ran.');
  expect(b.getSource()).toBe('prompt of b');
});

describe('a save', () => {
  test('is told when it begins and when it has succeeded', async () => {
    const { context, kernel } = await opened();

    void context.save(() =>
      expect(kernel.comm.sent).toEqual([{ method: 'saving' }])
    );

    expect(kernel.comm.sent).toEqual([
      { method: 'saving' },
      { method: 'saved' }
    ]);
  });

  test('that failed is not told to have succeeded', async () => {
    const { context, kernel } = await opened();

    context.saveState.emit('started');
    context.saveState.emit('failed');

    expect(kernel.comm.sentOf('saved')).toEqual([]);
  });

  test('under another name is no save: this notebook is as dirty as before', async () => {
    const { context, kernel, model } = await opened();
    model.dirty = true;

    context.saveState.emit('started');
    context.saveState.emit('completed');

    expect(kernel.comm.sentOf('saved')).toEqual([]);
  });

  test.each([
    ['a turn', { method: 'turn', cell_id: 'a', record: TURN }],
    ['a header', { method: 'session', record: HEADER, revision: 1 }],
    ['outputs', { method: 'outputs', cells: [pictureOf('a')] }]
  ])('that %s came too late for leaves the notebook dirty', async (_, data) => {
    const { context, kernel, model } = await opened();

    void context.save(() => kernel.comm.hear(data));
    expect(model.dirty).toBe(true);
    expect(kernel.comm.sentOf('saved')).toHaveLength(1);

    void context.save();
    expect(model.dirty).toBe(false);
  });

  test('is made before a cell runs, if there is something to save', async () => {
    const { kernel, model, session } = await opened();
    session.save();
    expect(kernel.comm.sent).toEqual([]);

    model.dirty = true;
    session.save();

    expect(model.dirty).toBe(false);
    expect(kernel.comm.sentOf('saved')).toHaveLength(1);
  });

  test.each<[string, (place: Awaited<ReturnType<typeof opened>>) => void]>([
    [
      'to a file that is read-only',
      ({ context }) => (context.contentsModel = { writable: false })
    ],
    [
      'to a file that is not there yet',
      ({ context }) => (context.contentsModel = null)
    ],
    ['of what is read-only here', ({ model }) => (model.readOnly = true)],
    ['beside another one', ({ context }) => context.saveState.emit('started')]
  ])('%s is not made', async (_, make) => {
    const place = await opened();
    place.model.dirty = true;
    make(place);

    place.session.save();

    expect(place.kernel.comm.sentOf('saved')).toEqual([]);
  });

  test('of what people edit together is left to the server', async () => {
    const { context, model, session } = await opened(new FakeKernel(), {
      collaborationEnabled: true
    });
    const save = jest.spyOn(context, 'save');
    model.dirty = true;

    session.save();

    expect(save).not.toHaveBeenCalled();
  });

  test('by the server of what people edit together is told', async () => {
    const { kernel, model } = await opened(new FakeKernel(), {
      collaborationEnabled: true
    });
    model.dirty = true;
    expect(kernel.comm.sent).toEqual([]);

    model.dirty = false;

    expect(kernel.comm.sent).toEqual([{ method: 'saved' }]);
  });
});

describe('outputs', () => {
  test('are shown in their cells', async () => {
    const { kernel, model } = await opened();

    kernel.comm.hear({
      method: 'outputs',
      cells: [
        pictureOf('a', { execution_count: 5 }),
        pictureOf('gone'),
        pictureOf('c', { is_running: true, execution_count: null })
      ]
    });

    expect(cellOf(model, 0).outputs.toJSON()).toEqual([text]);
    expect(cellOf(model, 0).executionCount).toBe(5);
    expect(cellOf(model, 1).outputs.length).toBe(0);
    expect(cellOf(model, 2).executionState).toBe('running');
  });

  test('are not for a cell that is no longer code', async () => {
    const { kernel, model } = await opened();
    model.sharedModel.insertCell(0, {
      cell_type: 'markdown',
      id: 'm',
      source: '',
      metadata: {}
    });

    kernel.comm.hear({ method: 'outputs', cells: [pictureOf('m')] });

    expect(model.cells.get(0).toJSON()).not.toHaveProperty('outputs');
  });

  test.each([
    ['nobody else', [], true],
    ['the server', [{}], true],
    ['another page', [{ user: { username: 'other' } }], false]
  ])('in a notebook that is open with %s', async (_, others, isShown) => {
    const { kernel, model } = await opened(new FakeKernel(), {
      collaborationEnabled: true
    });
    const { awareness } = model.sharedModel as unknown as {
      awareness: { clientID: number; states: Map<number, object> };
    };
    awareness.states = new Map([
      [awareness.clientID, { user: { username: 'me' } }],
      ...others.map((state, index) => [index, state] as [number, object])
    ]);

    kernel.comm.hear({ method: 'outputs', cells: [pictureOf('a')] });

    expect(cellOf(model, 0).outputs.length).toBe(isShown ? 1 : 0);
  });
});

describe('stale cells', () => {
  test('are those that the kernel named last', async () => {
    const { kernel, session } = await opened();
    const changed = jest.fn();
    session.staleChanged.connect(changed);

    kernel.comm.hear({ method: 'stale', cells: ['b', 'c'] });
    expect([...session.stale]).toEqual(['b', 'c']);
    kernel.comm.hear({ method: 'stale', cells: ['c', 'b'] });
    expect(changed).toHaveBeenCalledTimes(1);

    kernel.comm.hear({ method: 'stale', cells: ['c'] });
    expect([...session.stale]).toEqual(['c']);
  });

  test('of a former kernel are none for the next, which names its own', async () => {
    const { context, kernel, session } = await opened();
    kernel.comm.hear({ method: 'stale', cells: ['b'] });
    context.restart();
    await settled();

    kernel.comm.hear({ method: 'ready', kernel: 'k2' });

    expect(session.stale.size).toBe(0);
  });

  test('stay where the kernel names them again before it is ready', async () => {
    const { context, kernel, session } = await opened();
    kernel.comm.hear({ method: 'stale', cells: ['b'] });
    const changed = jest.fn();
    session.staleChanged.connect(changed);
    context.restart();
    await settled();

    kernel.comm.hear({ method: 'stale', cells: ['b'] });
    kernel.comm.hear({ method: 'ready', kernel: 'k2' });

    expect([...session.stale]).toEqual(['b']);
    expect(changed).not.toHaveBeenCalled();
  });

  test('are none after dispose', async () => {
    const { kernel, session } = await opened();
    kernel.comm.hear({ method: 'stale', cells: ['b'] });

    session.dispose();

    expect(session.stale.size).toBe(0);
  });
});

describe('a question that waits', () => {
  const hasWidget = (model: NotebookModel, index: number) =>
    WIDGET in cellOf(model, index).outputs.get(0).data;

  async function waiting(): Promise<IOpened> {
    const all = await opened();
    for (const cell of all.model.cells) {
      (cell as ICodeCellModel).outputs.add(pending);
    }
    return all;
  }

  test.each(['dead', 'terminating', 'restarting', 'autorestarting'])(
    'loses its widget when the kernel is %s',
    async status => {
      const { context, model } = await waiting();

      context.setStatus(status);

      expect(hasWidget(model, 0)).toBe(false);
      expect(cellOf(model, 0).outputs.toJSON()).toEqual([text]);
    }
  );

  test.each(['idle', 'busy', 'unknown', 'starting'])(
    'keeps its widget when the kernel is %s',
    async status => {
      const { context, model } = await waiting();

      context.setStatus(status);

      expect(hasWidget(model, 0)).toBe(true);
    }
  );

  test.each([[null], [new FakeKernel()]])(
    'loses its widget when the kernel changes',
    async kernel => {
      const { context, model } = await waiting();

      context.setKernel(kernel);

      expect(hasWidget(model, 0)).toBe(false);
    }
  );

  test('keeps its widget while the connection is lost', async () => {
    const { context, model, kernel } = await waiting();
    kernel.comm.hear({ method: 'ready', kernel: 'k1' });
    cellOf(model, 0).outputs.set(0, pending);

    context.setConnection('connecting');
    context.setConnection('connected');
    await settled();
    kernel.comm.hear({ method: 'ready', kernel: 'k1' });

    expect(hasWidget(model, 0)).toBe(true);
  });

  test('loses its widget where the kernel is another one and does not run its cell', async () => {
    const { kernel, model } = await waiting();
    cellOf(model, 2).executionState = 'running';

    kernel.comm.hear({
      method: 'outputs',
      cells: [pictureOf('b', { outputs: [pending], is_running: true })]
    });
    expect(hasWidget(model, 0)).toBe(true);
    kernel.comm.hear({ method: 'ready', kernel: 'k1' });

    expect([0, 1, 2].map(index => hasWidget(model, index))).toEqual([
      false,
      true,
      true
    ]);
  });

  test('is given up with its kernel, and its cell is busy no longer', async () => {
    const { context, kernel, model } = await opened();
    kernel.comm.hear({
      method: 'outputs',
      cells: [pictureOf('b', { outputs: [pending], is_running: true })]
    });

    context.setStatus('dead');

    expect(hasWidget(model, 1)).toBe(false);
    expect(cellOf(model, 1).executionState).toBe('idle');
  });

  test('matters to nobody once the notebook is closed', async () => {
    const { context, model } = await waiting();
    model.dispose();

    expect(() => context.setStatus('dead')).not.toThrow();
  });
});

describe('a change of a cell that the kernel asks for', () => {
  const insert = {
    method: 'edit',
    id: 'r1',
    action: 'insert',
    cell_id: 'new',
    cell_type: 'code',
    source: 'a prompt',
    after: 'a'
  };

  test('is told after the new order', async () => {
    const { model, kernel } = await opened();

    kernel.comm.hear(insert);
    await settled();

    expect(kernel.comm.sent.map(({ method }) => method)).toEqual([
      'cells',
      'edited'
    ]);
    expect(model.cells.get(1).sharedModel.getSource()).toBe('a prompt');
    expect(model.dirty).toBe(true);
  });

  test.each([
    [
      'is not writable',
      ({ context }: IOpened) => (context.contentsModel = { writable: false })
    ],
    [
      'is read-only',
      ({ model }: IOpened) => ((model as { readOnly: boolean }).readOnly = true)
    ]
  ])('is refused where the notebook %s', async (_, prepare) => {
    const page = await opened();
    prepare(page);

    page.kernel.comm.hear(insert);

    expect(page.kernel.comm.sent).toEqual([
      { method: 'edited', id: 'r1', refusal: 'read-only' }
    ]);
    expect(page.model.cells.length).toBe(3);
  });
});
