import type { ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { StaleMarks } from '../stale';
import { codeCell, notebookOf } from './fakecontext';
import { settled } from './fakepanel';

/** What is used of a notebook on the screen: a widget for each cell of a real notebook. */
class FakeNotebook {
  constructor() {
    this.model.cells.changed.connect(this._draw, this);
    this._draw();
  }

  readonly model = notebookOf(['a', 'b'].map(id => codeCell(id)));
  isDisposed = false;
  widgets: CellWidget[] = [];

  /** Draw cells that are new; of the others the widgets stay. */
  private _draw(): void {
    this.widgets = [...this.model.cells].map(
      model =>
        this.widgets.find(widget => widget.model === model) ??
        Object.assign(new Widget(), { model })
    );
  }
}

type CellWidget = Widget & { model: ICellModel };

function marked(): { notebook: FakeNotebook; marks: StaleMarks } {
  const notebook = new FakeNotebook();
  const marks = new StaleMarks({
    notebook: notebook as unknown as Notebook,
    label: 'Run again',
    explanation: 'Something changed.'
  });
  return { notebook, marks };
}

function notesOf({ widgets }: FakeNotebook): (string | null)[] {
  return widgets.map(({ node }) => node.textContent);
}

test('stale cells say so, for readers of the screen as well', () => {
  const { notebook, marks } = marked();

  marks.show(new Set(['b', 'gone']));

  expect(notesOf(notebook)).toEqual(['', 'Run again']);
  const { node } = notebook.widgets[1];
  const note = node.querySelector<HTMLElement>('.crush-stale-note')!;
  expect(node.classList).toContain('crush-stale');
  expect(node.getAttribute('aria-describedby')).toBe(note.id);
  expect(note.title).toBe('Something changed.');
});

test('a note is written once, and is its own', () => {
  const { notebook, marks } = marked();

  marks.show(new Set(['a', 'b']));
  marks.show(new Set(['b', 'a']));

  expect(notesOf(notebook)).toEqual(['Run again', 'Run again']);
  const [one, other] = notebook.widgets.map(({ node }) =>
    node.getAttribute('aria-describedby')
  );
  expect(one).not.toBe(other);
});

test('a cell that is no longer stale says nothing', () => {
  const { notebook, marks } = marked();
  marks.show(new Set(['a', 'b']));

  marks.show(new Set(['b']));

  expect(notesOf(notebook)).toEqual(['', 'Run again']);
  const { node } = notebook.widgets[0];
  expect(node.className).not.toContain('crush-stale');
  expect(node.hasAttribute('aria-describedby')).toBe(false);
});

test('what a cell shows is not taken for its note', () => {
  const { notebook, marks } = marked();
  const output = document.createElement('div');
  output.innerHTML = '<div class="crush-stale-note">painted</div>';
  notebook.widgets[0].node.append(output);
  marks.show(new Set(['a']));

  marks.show(new Set());

  expect(notesOf(notebook)).toEqual(['painted', '']);
});

test('a cell keeps its mark where it moves', async () => {
  const { notebook, marks } = marked();
  marks.show(new Set(['a']));

  notebook.model.sharedModel.moveCell(0, 1);
  await settled();

  expect(notesOf(notebook)).toEqual(['', 'Run again']);
});

test('all marks go with the kernel', async () => {
  const { notebook, marks } = marked();
  marks.show(new Set(['a', 'b']));

  marks.dispose();
  marks.dispose();
  notebook.model.sharedModel.moveCell(0, 1);
  await settled();

  expect(marks.isDisposed).toBe(true);
  expect(notesOf(notebook)).toEqual(['', '']);
});

test('a notebook that was closed is left alone', async () => {
  const { notebook, marks } = marked();
  notebook.model.sharedModel.moveCell(0, 1);
  notebook.isDisposed = true;
  notebook.widgets = [];

  marks.show(new Set(['a']));
  await settled();

  expect(notesOf(notebook)).toEqual([]);
});
