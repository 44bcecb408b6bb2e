import { CrushNotebooks } from '../notebooks';
import { FakePanel, settled } from './fakepanel';

function watched(): {
  notebooks: CrushNotebooks;
  panel: FakePanel;
  changes: boolean[];
} {
  const notebooks = new CrushNotebooks();
  const panel = new FakePanel();
  const changes: boolean[] = [];
  notebooks.changed.connect((_, { isCrush }) => changes.push(isCrush));
  return { notebooks, panel, changes };
}

test('a notebook that opens with a Crush kernel is a Crush notebook', async () => {
  const { notebooks, panel, changes } = watched();
  panel.setKernel('crush-kernel');

  await notebooks.add(panel.asPanel());

  expect(notebooks.has(panel.asPanel())).toBe(true);
  expect(changes).toEqual([true]);
});

test.each(['ipython', '', 'incrush'])(
  'a kernel that calls itself %p is not Crush',
  async implementation => {
    const { notebooks, panel, changes } = watched();
    panel.setKernel(implementation);

    await notebooks.add(panel.asPanel());

    expect(notebooks.has(panel.asPanel())).toBe(false);
    expect(changes).toEqual([]);
  }
);

test('switching the kernel there and back is followed both ways', async () => {
  const { notebooks, panel, changes } = watched();
  panel.setKernel('crush');
  await notebooks.add(panel.asPanel());

  panel.setKernel('ipython');
  await settled();
  panel.setKernel('crush');
  await settled();

  expect(changes).toEqual([true, false, true]);
});

test('a notebook that loses its kernel stays a Crush notebook', async () => {
  const { notebooks, panel } = watched();
  panel.setKernel('crush');
  await notebooks.add(panel.asPanel());

  panel.setKernel(null);
  await settled();

  expect(notebooks.has(panel.asPanel())).toBe(true);
});

test('a kernel that dies before it answers is not Crush', async () => {
  const { notebooks, panel } = watched();
  panel.setKernel(new Error('dead'));

  await notebooks.add(panel.asPanel());

  expect(notebooks.has(panel.asPanel())).toBe(false);
});

test('a late answer of a kernel that was switched away says nothing', async () => {
  const { notebooks, panel, changes } = watched();
  let answer: (implementation: string) => void = () => undefined;
  panel.setKernel(new Promise<string>(resolve => (answer = resolve)));
  const added = notebooks.add(panel.asPanel());

  panel.setKernel('ipython');
  answer('crush');
  await added;
  await settled();

  expect(changes).toEqual([]);
});

test('a closed notebook is forgotten', async () => {
  const { notebooks, panel } = watched();
  panel.setKernel('crush');
  await notebooks.add(panel.asPanel());

  panel.dispose();

  expect(notebooks.has(panel.asPanel())).toBe(false);
});

describe('a kernel that has the name of Crush', () => {
  test('is Crush before it answers, and stays it', async () => {
    const { notebooks, panel, changes } = watched();
    let answer: (implementation: string) => void = () => undefined;
    panel.setKernel(
      new Promise<string>(resolve => (answer = resolve)),
      'crush'
    );

    const added = notebooks.add(panel.asPanel());
    expect(changes).toEqual([true]);
    answer('crush');
    await added;

    expect(changes).toEqual([true]);
  });

  test.each([['ipython'], [new Error('dead')]])(
    'is not Crush any more when it answers %p',
    async implementation => {
      const { notebooks, panel, changes } = watched();
      panel.setKernel(implementation, 'crush');

      await notebooks.add(panel.asPanel());

      expect(changes).toEqual([true, false]);
    }
  );
});
