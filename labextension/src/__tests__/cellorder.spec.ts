import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import { writeMetadata } from '../cellmetadata';
import { CellOrder } from '../cellorder';
import { codeCell, display, notebookOf } from './fakecontext';

const TURN = { version: 1, turn: 'c1.1', revision: 3 };

function ids(lists: readonly (readonly { id: string }[])[]): string[][] {
  return lists.map(list => list.map(({ id }) => id));
}

function markdown(id: string) {
  return { cell_type: 'markdown', id, source: 'text', metadata: {} };
}

/** Return a notebook with the code cells a, b and c, and its order after the first list. */
function told(): { model: INotebookModel; order: CellOrder } {
  const model = notebookOf(['a', 'b', 'c'].map(id => codeCell(id)));
  const order = new CellOrder(model);
  order.next();
  return { model, order };
}

test('the first list has all cells, in order, with what they keep', () => {
  const model = notebookOf([
    codeCell('c1', { metadata: { crush: TURN }, execution_count: 7 }),
    markdown('m1'),
    { ...markdown('r1'), cell_type: 'raw' },
    codeCell('c2')
  ]);

  expect(new CellOrder(model).next()).toEqual([
    [
      { id: 'c1', type: 'code', execution_count: 7, crush: TURN },
      { id: 'm1', type: 'markdown', execution_count: null },
      { id: 'r1', type: 'raw', execution_count: null },
      { id: 'c2', type: 'code', execution_count: null }
    ]
  ]);
});

describe('a turn in the outputs', () => {
  const old = display({
    'application/vnd.crush.turn.v1+json': { turn: 'old' }
  });
  const last = display({
    'text/markdown': 'hello',
    'application/vnd.crush.turn.v1+json': TURN
  });

  test('is told, the last one, where the metadata have none', () => {
    const outputs = [old, last, display({ 'text/markdown': 'footer' })];
    const [[entry]] = new CellOrder(
      notebookOf([codeCell('c1', { outputs })])
    ).next();

    expect(entry.record).toEqual(TURN);
    expect(entry).not.toHaveProperty('crush');
  });

  test('is not told where the metadata have one', () => {
    const [[entry]] = new CellOrder(
      notebookOf([
        codeCell('c1', { outputs: [old], metadata: { crush: TURN } })
      ])
    ).next();

    expect(entry.crush).toEqual(TURN);
    expect(entry).not.toHaveProperty('record');
  });

  test.each([[null], ['text'], [['list']]])('that is %p is none', value => {
    const outputs = [
      display({ 'application/vnd.crush.turn.v1+json': value } as never)
    ];
    const [[entry]] = new CellOrder(
      notebookOf([
        codeCell('c1', { outputs, metadata: { crush: value } as never })
      ])
    ).next();

    expect(entry).toEqual({ id: 'c1', type: 'code', execution_count: null });
  });
});

test('nothing is told twice', () => {
  const { order } = told();

  expect(order.next()).toEqual([]);
});

test('typing tells nothing', () => {
  const { model, order } = told();

  model.cells.get(0).sharedModel.setSource('other');

  expect(order.next()).toEqual([]);
});

test('a new cell is told with what it keeps, the others by id and type only', () => {
  const { model, order } = told();

  model.sharedModel.insertCell(1, codeCell('d', { metadata: { crush: TURN } }));

  expect(order.next()).toEqual([
    [
      { id: 'a', type: 'code' },
      { id: 'd', type: 'code', execution_count: null, crush: TURN },
      { id: 'b', type: 'code' },
      { id: 'c', type: 'code' }
    ]
  ]);
});

test('a cell that was deleted is missing, and comes back as a new one by undo', () => {
  const { model, order } = told();
  writeMetadata(model.cells.get(1), TURN);

  model.sharedModel.deleteCell(1);
  expect(ids(order.next())).toEqual([['a', 'c']]);

  model.sharedModel.undo();
  expect(order.next()).toEqual([
    [
      { id: 'a', type: 'code' },
      { id: 'b', type: 'code', execution_count: null, crush: TURN },
      { id: 'c', type: 'code' }
    ]
  ]);

  model.sharedModel.redo();
  expect(ids(order.next())).toEqual([['a', 'c']]);
});

test('a cell that moved is told by id and type, with a turn that the kernel wrote too', () => {
  const { model, order } = told();
  writeMetadata(model.cells.get(0), TURN);
  order.noteWritten(model.cells.get(0), TURN);

  model.sharedModel.moveCell(0, 2);

  expect(order.next()).toEqual([
    [
      { id: 'b', type: 'code' },
      { id: 'c', type: 'code' },
      { id: 'a', type: 'code' }
    ]
  ]);
});

test('a cell that changed its type is told', () => {
  const { model, order } = told();

  model.sharedModel.transact(() => {
    model.sharedModel.deleteCell(1);
    model.sharedModel.insertCell(1, markdown('b') as never);
  });

  expect(order.next()).toEqual([
    [
      { id: 'a', type: 'code' },
      { id: 'b', type: 'markdown' },
      { id: 'c', type: 'code' }
    ]
  ]);
});

test('a cell that was read anew from the file is told only if it keeps another turn', () => {
  const cells = () => [
    codeCell('a', { metadata: { crush: { ...TURN } } }),
    codeCell('b', { metadata: { crush: { ...TURN } } })
  ];
  const model = notebookOf(cells());
  const order = new CellOrder(model);
  order.next();
  const [first, second] = cells();
  second.metadata.crush = { ...TURN, revision: 4 };

  model.fromJSON({
    ...(model.toJSON() as nbformat.INotebookContent),
    cells: [first, second]
  });

  expect(order.next()).toEqual([
    [
      { id: 'a', type: 'code' },
      {
        id: 'b',
        type: 'code',
        execution_count: null,
        crush: { ...TURN, revision: 4 }
      }
    ]
  ]);
});

test('after a reset all is new', () => {
  const { order } = told();

  order.reset();

  expect(order.next()[0]).toContainEqual({
    id: 'a',
    type: 'code',
    execution_count: null
  });
});

test('an empty list is told once', () => {
  const { model, order } = told();

  model.sharedModel.deleteCellRange(0, 3);

  expect(order.next()).toEqual([[]]);
  expect(order.next()).toEqual([]);
});

describe('what is too much for one message', () => {
  const big = (id: string, chars = 400) =>
    codeCell(id, {
      metadata: { crush: { turn: id, revision: 1, text: 'x'.repeat(chars) } }
    });

  test('comes in lists that grow', () => {
    const order = new CellOrder(
      notebookOf([big('a'), codeCell('b'), big('c'), big('d')]),
      1100
    );

    const lists = order.next();

    expect(ids(lists)).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'c', 'd']
    ]);
    expect(lists[1][0]).toEqual({ id: 'a', type: 'code' });
    expect(lists[1][3]).toHaveProperty('crush');
    expect(order.next()).toEqual([]);
  });

  test('never takes a cell away that is known', () => {
    const model = notebookOf([codeCell('a'), codeCell('z')]);
    const order = new CellOrder(model, 1100);
    order.next();

    model.sharedModel.insertCells(1, [big('b'), big('c'), big('d')]);

    expect(ids(order.next())).toEqual([
      ['a', 'b', 'c', 'z'],
      ['a', 'b', 'c', 'd', 'z']
    ]);
  });

  test('is left out where one cell alone is too much', () => {
    const order = new CellOrder(notebookOf([big('a', 2000), big('b')]), 1000);

    expect(order.next()).toEqual([
      [{ id: 'a', type: 'code', execution_count: null }],
      [
        { id: 'a', type: 'code' },
        expect.objectContaining({ id: 'b', crush: expect.anything() })
      ]
    ]);
  });
});
