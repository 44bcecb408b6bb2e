import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IPicture } from '../protocol';
import { Repaint } from '../repaint';
import { codeCell, display, notebookOf } from './fakecontext';

const one = display({ 'text/markdown': 'one' });
const two = display({ 'text/markdown': 'two' });
const three = display({ 'text/markdown': 'three' });
const stdout: nbformat.IStream = {
  output_type: 'stream',
  name: 'stdout',
  text: 'out\n'
};
const stderr: nbformat.IStream = {
  output_type: 'stream',
  name: 'stderr',
  text: 'err\n'
};
const error: nbformat.IError = {
  output_type: 'error',
  ename: 'E',
  evalue: 'v',
  traceback: ['t']
};

function picture(rest: Partial<IPicture> = {}): IPicture {
  return {
    cellId: 'c1',
    outputs: [],
    executionCount: rest.isRunning ? null : 3,
    isRunning: false,
    ...rest
  };
}

function painted(
  outputs: nbformat.IOutput[],
  rest: Partial<nbformat.ICodeCell> = {}
): { model: INotebookModel; cell: ICodeCellModel; repaint: Repaint } {
  const model = notebookOf([codeCell('c1', { outputs, ...rest })]);
  const cell = model.cells.get(0) as ICodeCellModel;
  return { model, cell, repaint: new Repaint() };
}

/** Run `cell` as JupyterLab does. */
function run(cell: ICodeCellModel): void {
  cell.sharedModel.transact(
    () => cell.clearExecution(),
    false,
    'silent-change'
  );
  cell.executionState = 'running';
  cell.trusted = true;
}

const SETS: [string, nbformat.IOutput[]][] = [
  ['nothing', []],
  ['one', [one]],
  ['another', [two]],
  ['two', [one, two]],
  ['three', [three, one, two]],
  ['a stream', [stdout]],
  ['both streams', [stdout, stderr]],
  ['a stream after text', [one, stdout]],
  ['text after a stream', [stdout, two]],
  ['an error', [one, error]],
  ['streams around text', [stdout, one, { ...stdout, text: 'more\n' }]]
];

describe.each(SETS)('a cell that shows %s', (_, before) => {
  test.each(SETS)('shows %s afterwards, and so does its file', (_, after) => {
    const { model, cell, repaint } = painted(before);

    repaint.show(cell, picture({ outputs: after }));

    expect(cell.outputs.toJSON()).toEqual(after);
    expect(
      (model.toJSON() as nbformat.INotebookContent).cells[0].outputs
    ).toEqual(after);
  });

  test('is not touched if it is to show the same', () => {
    const { model, cell, repaint } = painted(before, { execution_count: 3 });
    const changed = jest.fn();
    cell.outputs.changed.connect(changed);
    cell.stateChanged.connect(changed);

    expect(repaint.isDue(cell, picture({ outputs: before }))).toBe(false);
    repaint.show(cell, picture({ outputs: before }));

    expect(changed).not.toHaveBeenCalled();
    expect(model.dirty).toBe(false);
  });
});

test('of many outputs only what differs is drawn anew', () => {
  const { cell, repaint } = painted([one, two, three]);
  const first = cell.outputs.get(0);
  const changed: unknown[] = [];
  cell.outputs.changed.connect((_, { type, newIndex }) =>
    changed.push([type, newIndex])
  );

  repaint.show(cell, picture({ outputs: [one, error, three, one] }));

  expect(changed).toEqual([
    ['set', 1],
    ['add', 3]
  ]);
  expect(cell.outputs.get(0)).toBe(first);
});

test('a cell that ended has its number, and the trust that it had', () => {
  const { cell, repaint } = painted([]);
  cell.trusted = false;

  repaint.show(cell, picture({ outputs: [one] }));

  expect(cell.executionCount).toBe(3);
  expect(cell.executionState).toBe('idle');
  expect(cell.trusted).toBe(false);
  expect(cell.outputs.trusted).toBe(false);
});

test('a cell that runs is busy, without a number, and trusted like any that runs', () => {
  const { cell, repaint } = painted([two], { execution_count: 2 });
  cell.trusted = false;

  repaint.show(cell, picture({ outputs: [one], isRunning: true }));

  expect(cell.executionCount).toBeNull();
  expect(cell.executionState).toBe('running');
  expect(cell.outputs.trusted).toBe(true);
  expect(cell.outputs.toJSON()).toEqual([one]);
});

test.each([
  ['its number', { executionCount: 4 }],
  ['its state', { isRunning: true, executionCount: null }],
  ['its outputs', { outputs: [two] }]
])('a cell that differs in %s is due, and not afterwards', (_, rest) => {
  const { cell, repaint } = painted([one], { execution_count: 3 });
  const next = picture({ outputs: [one], ...rest });

  expect(repaint.isDue(cell, next)).toBe(true);
  repaint.show(cell, next);

  expect(repaint.isDue(cell, next)).toBe(false);
});

test('a cell is followed until it ends', () => {
  const { cell, repaint } = painted([]);

  for (const outputs of [[one], [one, two], [one, three]]) {
    repaint.show(cell, picture({ outputs, isRunning: true }));
    expect(cell.outputs.toJSON()).toEqual(outputs);
    expect(repaint.isRunByPage(cell)).toBe(false);
  }
  repaint.show(cell, picture({ outputs: [three] }));

  expect(cell.outputs.toJSON()).toEqual([three]);
  expect(cell.executionState).toBe('idle');
  expect(cell.executionCount).toBe(3);
});

describe('a cell that this page runs', () => {
  test('is left alone', () => {
    const { cell, repaint } = painted([one]);
    run(cell);
    cell.outputs.add(two);

    expect(repaint.isRunByPage(cell)).toBe(true);
    expect(repaint.isDue(cell, picture({ outputs: [three] }))).toBe(false);
    repaint.show(cell, picture({ outputs: [three] }));

    expect(cell.outputs.toJSON()).toEqual([two]);
    expect(cell.executionState).toBe('running');
  });

  test('is left alone also if it was followed before', () => {
    const { cell, repaint } = painted([]);
    repaint.show(cell, picture({ outputs: [one], isRunning: true }));
    run(cell);

    repaint.show(cell, picture({ outputs: [one], isRunning: true }));

    expect(cell.outputs.toJSON()).toEqual([]);
  });

  test('is painted again after it ended', () => {
    const { cell, repaint } = painted([]);
    run(cell);
    cell.executionState = 'idle';

    repaint.show(cell, picture({ outputs: [two] }));

    expect(cell.outputs.toJSON()).toEqual([two]);
  });
});

test('cells that were followed stop with their kernel, others do not', () => {
  const { cell, repaint } = painted([]);
  const own = notebookOf([codeCell('c2')]).cells.get(0) as ICodeCellModel;
  repaint.show(cell, picture({ outputs: [one], isRunning: true }));
  run(own);

  repaint.stop([cell, own]);

  expect(cell.executionState).toBe('idle');
  expect(cell.outputs.toJSON()).toEqual([one]);
  expect(own.executionState).toBe('running');
});
