import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { NotebookModel } from '@jupyterlab/notebook';
import { YNotebook } from '@jupyter/ydoc';
import { applyEdit, shownCells } from '../celledits';
import { findCell } from '../cells';
import type { ICellEdit } from '../protocol';
import { codeCell, display, notebookOf } from './fakecontext';

const TURN = { version: 1, turn: 'a.1', revision: 3 };

const text: nbformat.ICell = {
  cell_type: 'markdown',
  id: 'text',
  source: '# Title',
  metadata: {}
};

/** A notebook as JupyterLab opens it: a cell has an undo of its own beside the notebook's. */
function threeCells(): NotebookModel {
  const sharedModel = YNotebook.create({ disableDocumentWideUndoRedo: true });
  return notebookOf(
    [
      codeCell('a', {
        metadata: { crush: TURN, tags: ['x'] },
        outputs: [display({ 'text/markdown': 'said' })],
        execution_count: 1
      }),
      text,
      codeCell('b')
    ],
    { sharedModel: sharedModel as never }
  );
}

function ids(model: NotebookModel): string[] {
  return [...model.cells].map(cell => cell.id);
}

function insert(rest: object = {}): ICellEdit {
  const edit = { action: 'insert', cellId: 'new', cellType: 'code' } as const;
  return { ...edit, source: 'a prompt', after: 'a', ...rest };
}

function replace(rest: object = {}): ICellEdit {
  const edit = { action: 'replace', cellId: 'a', cellType: 'code' } as const;
  return { ...edit, source: 'new', former: 'prompt of a', ...rest };
}

function remove(rest: object = {}): ICellEdit {
  return { action: 'delete', cellId: 'a', former: 'prompt of a', ...rest };
}

function move(after: string, cellId = 'a'): ICellEdit {
  return { action: 'move', cellId, after };
}

describe('a change that is asked for', () => {
  test.each([
    ['insert below a cell', insert(), ['a', 'new', 'text', 'b']],
    ['insert at the top', insert({ after: '' }), ['new', 'a', 'text', 'b']],
    ['insert at the end', insert({ after: 'b' }), ['a', 'text', 'b', 'new']],
    ['delete', remove(), ['text', 'b']],
    ['move down', move('text'), ['text', 'a', 'b']],
    ['move to the end', move('b'), ['text', 'b', 'a']],
    ['move to the top', move('', 'b'), ['b', 'a', 'text']],
    ['move up', move('a', 'b'), ['a', 'b', 'text']],
    ['move to where it is', move('a', 'text'), ['a', 'text', 'b']],
    ['move below itself', move('a'), ['a', 'text', 'b']]
  ] as const)('%s', (_, edit, expected) => {
    const model = threeCells();
    const before = model.toJSON();

    expect(applyEdit(model, edit)).toBeNull();
    expect(ids(model)).toEqual(expected);

    if (JSON.stringify(before) !== JSON.stringify(model.toJSON())) {
      model.sharedModel.undo();
    }
    expect(model.toJSON()).toEqual(before);
  });

  test('a new cell says what it is to say, and nothing else', () => {
    const model = threeCells();

    applyEdit(model, insert({ cellType: 'markdown' }));

    expect(findCell(model, 'new')!.toJSON()).toEqual({
      cell_type: 'markdown',
      id: 'new',
      source: 'a prompt',
      metadata: {}
    });
  });

  test('a cell that is replaced keeps its turn, and what it shows', () => {
    const model = threeCells();
    const before = model.toJSON();
    const cell = findCell(model, 'a')!;

    expect(applyEdit(model, replace())).toBeNull();

    expect(findCell(model, 'a')).toBe(cell);
    const [after] = model.toJSON().cells;
    expect(after).toEqual({ ...before.cells[0], source: 'new' });
    model.sharedModel.undo();
    expect(model.toJSON()).toEqual(before);
  });

  test('a cell of another type is no prompt any more, and undo makes it one again', () => {
    const model = threeCells();
    const before = model.toJSON();
    findCell(model, 'a')!.trusted = true;

    expect(applyEdit(model, replace({ cellType: 'markdown' }))).toBeNull();

    expect(model.cells.get(0).toJSON()).toEqual({
      cell_type: 'markdown',
      id: 'a',
      source: 'new',
      metadata: { crush: TURN, tags: ['x'] }
    });
    expect(model.cells.get(0).trusted).toBe(false);
    model.sharedModel.undo();
    expect(model.toJSON().cells.map(({ source }) => source)).toEqual(
      before.cells.map(({ source }) => source)
    );
  });

  test('a cell that moves takes along what it has', () => {
    const model = threeCells();
    const [before] = model.toJSON().cells;

    applyEdit(model, move('b'));

    expect(model.cells.get(2).toJSON()).toEqual(before);
  });

  test('what the user did just before is undone apart', () => {
    const model = threeCells();
    model.sharedModel.addCell({ cell_type: 'code', id: 'mine' });

    applyEdit(model, insert());
    model.sharedModel.addCell({ cell_type: 'code', id: 'mine too' });
    model.sharedModel.undo();
    expect(ids(model)).toEqual(['a', 'new', 'text', 'b', 'mine']);
    model.sharedModel.undo();
    expect(ids(model)).toEqual(['a', 'text', 'b', 'mine']);
    model.sharedModel.redo();
    expect(ids(model)).toEqual(['a', 'new', 'text', 'b', 'mine']);
  });

  test('JupyterLab hears of a cell that was deleted', () => {
    const model = threeCells();

    applyEdit(model, remove());

    expect(model.deletedCells).toEqual(['a']);
  });
});

describe('a change is refused', () => {
  const run = (model: NotebookModel) =>
    ((findCell(model, 'a') as ICodeCellModel).executionState = 'running');
  const lock = (name: string) => (model: NotebookModel) =>
    findCell(model, 'a')!.setMetadata(name, false);
  const nothing = () => undefined;

  test.each([
    ['taken', 'another cell has the id', nothing, insert({ cellId: 'b' })],
    ['unknown', 'no cell to go below', nothing, insert({ after: 'x' })],
    ['unknown', 'no cell to replace', nothing, replace({ cellId: 'x' })],
    ['unknown', 'no cell to delete', nothing, remove({ cellId: 'x' })],
    ['unknown', 'no cell to move', nothing, move('a', 'x')],
    ['unknown', 'no cell to move below', nothing, move('x')],
    ['changed', 'it says something else', nothing, replace({ former: 'x' })],
    ['changed', 'the same of deleting', nothing, remove({ former: 'x' })],
    ['busy', 'it runs', run, replace()],
    ['busy', 'it runs and would be deleted', run, remove()],
    ['busy', 'it runs and would move', run, move('b')],
    ['locked', 'it is read-only', lock('editable'), replace()],
    ['locked', 'it is to stay', lock('deletable'), remove()]
  ] as const)('as %s: %s', (refusal, _, prepare, edit) => {
    const model = threeCells();
    prepare(model);
    const before = model.toJSON();

    expect(applyEdit(model, edit)).toBe(refusal);

    expect(model.toJSON()).toEqual(before);
    expect(model.deletedCells).toEqual([]);
  });

  test('not of a cell below one that runs', () => {
    const model = threeCells();
    run(model);

    expect(applyEdit(model, insert())).toBeNull();
  });
});

describe('the cells are told', () => {
  test('as they are', () => {
    const model = threeCells();
    (findCell(model, 'b') as ICodeCellModel).executionState = 'running';

    const cell = { outputs: 0, execution_count: null, is_busy: false };
    expect(shownCells(model)).toEqual([
      [
        {
          ...cell,
          id: 'a',
          type: 'code',
          source: 'prompt of a',
          outputs: 1,
          execution_count: 1
        },
        { ...cell, id: 'text', type: 'markdown', source: '# Title' },
        {
          ...cell,
          id: 'b',
          type: 'code',
          source: 'prompt of b',
          is_busy: true
        }
      ]
    ]);
  });

  test('in parts where they are long, each of them in one', () => {
    const model = notebookOf(
      ['a', 'b', 'c', 'd'].map(id => codeCell(id, { source: id.repeat(300) }))
    );

    const parts = shownCells(model, 1000);

    expect(parts.map(part => part.map(({ id }) => id))).toEqual([
      ['a', 'b'],
      ['c', 'd']
    ]);
  });

  test('only the start of one that no message could hold', () => {
    const model = notebookOf([codeCell('a', { source: 'x'.repeat(5000) })]);

    expect(shownCells(model, 1000)[0][0].source).toHaveLength(1000);
  });
});
