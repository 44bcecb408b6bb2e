import { queueSaves } from '../savequeue';
import { FakeContext, notebookOf } from './fakecontext';
import { settled } from './fakepanel';

test('a save begins when the one before it is done, well or not', async () => {
  const context = new FakeContext(notebookOf([]));
  const ends: ((isWell: boolean) => void)[] = [];
  context.save = () =>
    new Promise((resolve, reject) =>
      ends.push(isWell => (isWell ? resolve() : reject(new Error('full'))))
    );
  queueSaves(context.asContext());
  queueSaves(context.asContext());

  const first = context.save();
  const second = context.save();
  await settled();
  expect(ends).toHaveLength(1);

  ends[0](false);
  await expect(first).rejects.toThrow('full');
  await settled();
  expect(ends).toHaveLength(2);

  ends[1](true);
  await second;
});
