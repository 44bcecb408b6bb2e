import type * as nbformat from '@jupyterlab/nbformat';
import type { NotebookModel } from '@jupyterlab/notebook';
import { codeCells } from '../cells';
import { buryWidgets, buryWithoutKernel } from '../deadwidgets';
import {
  FakeContext,
  FakeKernel,
  codeCell,
  display,
  notebookOf
} from './fakecontext';
import { settled } from './fakepanel';

const WIDGET = 'application/vnd.jupyter.widget-view+json';

const view = { version_major: 2, version_minor: 0, model_id: 'm1' };
const text = { 'text/markdown': 'bash wants to run', 'text/plain': 'bash' };

const pending = display(
  { ...text, [WIDGET]: view },
  { crush: { pending: true } }
);
const buried = display(text);

function shown(model: NotebookModel): nbformat.IOutput[] {
  const [cell] = (model.toJSON() as nbformat.INotebookContent).cells;
  expect(codeCells(model)[0].outputs.toJSON()).toEqual(cell.outputs);
  return cell.outputs as nbformat.IOutput[];
}

test.each([
  [
    'a question loses its widget and its mark, and keeps its text',
    pending,
    buried
  ],
  [
    'other metadata stay',
    display(
      { ...text, [WIDGET]: view },
      { crush: { pending: true, kind: 'card' }, other: 1 }
    ),
    display(text, { crush: { kind: 'card' }, other: 1 })
  ],
  [
    'a question without a widget loses its mark',
    display(text, { crush: { pending: true } }),
    buried
  ],
  ["a widget of the user's stays", display({ ...text, [WIDGET]: view }), null],
  [
    'a mark that is no mark is none',
    display({ ...text, [WIDGET]: view }, { crush: { pending: 'yes' } }),
    null
  ],
  [
    'metadata that are no object are none',
    display({ ...text, [WIDGET]: view }, { crush: ['pending'] } as never),
    null
  ]
])('%s', (_, before, after) => {
  const model = notebookOf([
    codeCell('c1', { outputs: [display(text), before, display(text)] })
  ]);

  buryWidgets(codeCells(model));

  expect(shown(model)).toEqual([display(text), after ?? before, display(text)]);
  expect(model.dirty).toBe(after !== null);
});

describe('a notebook that is only looked at', () => {
  const opened = (kernel: FakeKernel | null) => {
    const model = notebookOf([codeCell('c1', { outputs: [pending] })]);
    const context = new FakeContext(model, kernel);
    void buryWithoutKernel(context.asContext());
    return { model, context };
  };

  test('shows the text when it has no kernel, and is not dirty for it', async () => {
    const { model } = opened(null);
    await settled();

    expect(shown(model)).toEqual([buried]);
    expect(model.dirty).toBe(false);
  });

  test('stays dirty if it was', async () => {
    const { model } = opened(null);
    model.dirty = true;
    await settled();

    expect(model.dirty).toBe(true);
  });

  test('shows the text when it has a kernel that is not Crush', async () => {
    const { model } = opened(new FakeKernel('ipython'));
    await settled();

    expect(shown(model)).toEqual([buried]);
  });

  test('keeps the widget with a Crush kernel, which may have the answer', async () => {
    const { model } = opened(new FakeKernel());
    await settled();

    expect(shown(model)).toEqual([pending]);
  });

  test('keeps the widget while nobody knows what its kernel is', async () => {
    const { model } = opened(
      new FakeKernel(new Promise<string>(() => undefined))
    );
    await settled();

    expect(shown(model)).toEqual([pending]);
  });

  test.each([
    ['is shut down', null],
    ['is replaced by one that is not Crush', new FakeKernel('ipython')]
  ])('shows the text when its kernel %s', async (_, kernel) => {
    const { model, context } = opened(new FakeKernel());
    await settled();

    context.setKernel(kernel);
    await settled();

    expect(shown(model)).toEqual([buried]);
  });

  test('is left alone once it is closed', async () => {
    const { model, context } = opened(new FakeKernel());
    await settled();
    model.dispose();

    expect(() => context.setKernel(null)).not.toThrow();
    await settled();
  });
});
