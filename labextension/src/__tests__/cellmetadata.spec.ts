import type { INotebookModel } from '@jupyterlab/notebook';
import { readMetadata, writeMetadata } from '../cellmetadata';
import { codeCell, notebookOf } from './fakecontext';

const TURN = { version: 1, turn: 'c1.1', revision: 3, messages: [{ a: 1 }] };

const targets: [string, (model: INotebookModel) => Target][] = [
  ['a cell', model => model.cells.get(0)],
  ['a notebook', model => model]
];

type Target = Parameters<typeof writeMetadata>[0];

let model: INotebookModel;

beforeEach(() => {
  model = notebookOf([codeCell('c1', { metadata: { tags: ['mine'] } })]);
});

describe.each(targets)('%s', (_, targetOf) => {
  test('keeps what is written, beside what others keep, and is dirty then', () => {
    const target = targetOf(model);
    const others = target.metadata;

    writeMetadata(target, TURN);

    expect(target.metadata).toEqual({ ...others, crush: TURN });
    expect(model.toJSON()).toMatchObject(
      target === model
        ? { metadata: { crush: TURN } }
        : { cells: [{ metadata: { crush: TURN } }] }
    );
    expect(readMetadata(target)).toEqual(TURN);
    expect(model.dirty).toBe(true);
  });

  test('is not dirty if the same is written again, in any order of keys', () => {
    writeMetadata(targetOf(model), TURN);
    model.dirty = false;

    const { version, ...rest } = TURN;
    writeMetadata(targetOf(model), { ...rest, version });

    expect(model.dirty).toBe(false);
  });

  test('keeps nothing of ours after it was deleted, and others keep theirs', () => {
    const others = targetOf(model).metadata;
    writeMetadata(targetOf(model), TURN);

    writeMetadata(targetOf(model), null);

    expect(targetOf(model).metadata).toEqual(others);
    expect(readMetadata(targetOf(model))).toBeNull();
    model.dirty = false;
    writeMetadata(targetOf(model), null);
    expect(model.dirty).toBe(false);
  });

  test('keeps what was written when the user undoes an edit', () => {
    model.cells.get(0).sharedModel.setSource('edited');
    writeMetadata(targetOf(model), TURN);

    expect(model.cells.get(0).sharedModel.undo()).toBe(true);
    model.sharedModel.undo();

    expect(model.cells.get(0).sharedModel.getSource()).toBe('prompt of c1');
    expect(readMetadata(targetOf(model))).toEqual(TURN);
  });

  test.each([['text'], [7], [['list']], [null]])(
    'that has %p of ours has nothing to read',
    value => {
      targetOf(model).setMetadata('crush', value);

      expect(readMetadata(targetOf(model))).toBeNull();
    }
  );
});
