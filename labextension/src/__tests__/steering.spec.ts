import type { ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { SteeringBox } from '../steering';
import { codeCell, notebookOf } from './fakecontext';
import { settled } from './fakepanel';

/** A notebook on the screen that draws a cell anew when it moves. */
class FakeNotebook {
  constructor() {
    this.model.cells.changed.connect(this._draw, this);
    this._draw();
    document.body.replaceChildren(...this.widgets.map(({ node }) => node));
  }

  readonly model = notebookOf(['a', 'b'].map(id => codeCell(id)));
  isDisposed = false;
  widgets: (Widget & { model: ICellModel })[] = [];

  private _draw(): void {
    this.widgets = [...this.model.cells].map(
      model =>
        this.widgets.find(widget => widget.model === model) ??
        Object.assign(new Widget(), { model })
    );
  }
}

const labels = {
  steer: 'Add a message to this turn…',
  send: 'Send',
  discard: 'Discard',
  unsent: 'Not sent: the turn was over.'
};

function offered(cellId: string | null = 'b') {
  const notebook = new FakeNotebook();
  const said: [string, string][] = [];
  const refocus = jest.fn();
  const box = new SteeringBox({
    notebook: notebook as unknown as Notebook,
    labels,
    say: (...message) => said.push(message),
    refocus
  });
  box.show(cellId);
  const form = () =>
    notebook.widgets
      .map(({ node }) => node.querySelector<HTMLFormElement>(':scope > form'))
      .find(Boolean) ?? null;
  const input = () => form()!.querySelector('input')!;
  const button = () => form()!.querySelector('button')!;
  return { notebook, box, said, refocus, form, input, button };
}

test('it stands below the cell that runs, with a name and without the focus', () => {
  const { notebook, form, input, button } = offered();

  expect(form()!.parentElement).toBe(notebook.widgets[1].node);
  expect(input().getAttribute('aria-label')).toBe(labels.steer);
  expect(input().placeholder).toBe(labels.steer);
  expect(button().textContent).toBe('Send');
  expect(document.activeElement).toBe(document.body);
  expect(form()!.closest('[data-lm-suppress-shortcuts="true"]')).toBe(form());
});

test('what is typed is sent once, without blanks around it', () => {
  const { said, form, input, button } = offered();

  input().value = '  Use a branch. ';
  button().click();
  form()!.requestSubmit();

  expect(said).toEqual([['b', 'Use a branch.']]);
  expect(input().value).toBe('');
});

test.each([
  ['sends', {}, ['b', 'now'], ''],
  ['held down sends no more', { repeat: true }, undefined, 'now'],
  ['that ends a composition does not', { isComposing: true }, undefined, 'now']
])('Enter %s', (_, init, message, left) => {
  const { said, input } = offered();
  input().value = 'now';

  input().dispatchEvent(
    new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, ...init })
  );

  expect(said[0]).toEqual(message);
  expect(input().value).toBe(left);
});

test('Enter throws nothing away that came too late', () => {
  const { box, form, input } = offered();
  input().value = 'too late';
  box.show(null);

  input().dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));

  expect(form()).not.toBeNull();
});

test('it goes with the turn and gives the focus back if it had it', () => {
  const { box, form, input, refocus } = offered();
  input().focus();

  box.show(null);
  box.show(null);

  expect(form()).toBeNull();
  expect(refocus).toHaveBeenCalledTimes(1);
});

test('it takes no focus from elsewhere when it goes', () => {
  const { box, refocus } = offered();

  box.show(null);

  expect(refocus).not.toHaveBeenCalled();
});

test('what was typed when the turn ended is not lost', () => {
  const { box, said, form, input, button } = offered();
  input().value = 'too late';

  box.show(null);

  expect(input().value).toBe('too late');
  expect(input().readOnly).toBe(true);
  expect(form()!.textContent).toContain(labels.unsent);
  expect(button().textContent).toBe('Discard');
  button().click();
  expect(form()).toBeNull();
  expect(said).toEqual([]);
});

test('the next turn gets a box of its own', () => {
  const { notebook, box, form, input } = offered();
  input().value = 'too late';
  box.show(null);

  box.show('b');
  expect(input().value).toBe('');
  expect(input().readOnly).toBe(false);
  box.show('a');
  expect(form()!.parentElement).toBe(notebook.widgets[0].node);
});

test('what is typed stays while the same turn goes on', () => {
  const { box, input } = offered();
  input().value = 'half a';
  input().focus();

  box.show('b');

  expect(input().value).toBe('half a');
  expect(document.activeElement).toBe(input());
});

test('it stays with a cell that moves', async () => {
  const { notebook, form, input } = offered('a');
  input().value = 'half a';

  notebook.model.sharedModel.moveCell(0, 1);
  await settled();

  expect(form()!.parentElement).toBe(notebook.widgets[1].node);
  expect(input().value).toBe('half a');
});

test('a cell that is not there gets none, until it is', async () => {
  const { notebook, form } = offered('c');
  expect(form()).toBeNull();

  notebook.model.sharedModel.addCell({ cell_type: 'code', id: 'c' });
  await settled();

  expect(form()!.parentElement).toBe(notebook.widgets[2].node);
});

test('it goes with the view', async () => {
  const { notebook, box, form, input } = offered('a');
  input().value = 'half a';

  box.dispose();
  box.dispose();
  notebook.model.sharedModel.moveCell(0, 1);
  await settled();

  expect(box.isDisposed).toBe(true);
  expect(form()).toBeNull();
});
