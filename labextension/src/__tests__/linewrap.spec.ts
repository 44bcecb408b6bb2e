import type { Notebook } from '@jupyterlab/notebook';
import { LineWrap } from '../linewrap';

function notebookWith(code: Record<string, unknown>): Notebook {
  return {
    editorConfig: { code, markdown: { lineWrap: true }, raw: {} }
  } as unknown as Notebook;
}

test('lines of code cells wrap, and other settings stay', () => {
  const notebook = notebookWith({ lineWrap: false, lineNumbers: true });

  new LineWrap().enable(notebook);

  expect(notebook.editorConfig.code).toEqual({
    lineWrap: true,
    lineNumbers: true
  });
  expect(notebook.editorConfig.markdown).toEqual({ lineWrap: true });
});

test('restoring gives back a setting that was off or absent', () => {
  const lineWrap = new LineWrap();
  for (const notebook of [
    notebookWith({ lineWrap: false }),
    notebookWith({})
  ]) {
    lineWrap.enable(notebook);
    lineWrap.restore(notebook);

    expect(notebook.editorConfig.code.lineWrap).toBe(false);
  }
});

test('a user who wraps all code keeps wrapping after another kernel', () => {
  const lineWrap = new LineWrap();
  const notebook = notebookWith({ lineWrap: true });

  lineWrap.enable(notebook);
  lineWrap.restore(notebook);

  expect(notebook.editorConfig.code.lineWrap).toBe(true);
});

test('a notebook that never wrapped for Crush is left alone', () => {
  const notebook = notebookWith({ lineWrap: false });
  const before = notebook.editorConfig;

  new LineWrap().restore(notebook);

  expect(notebook.editorConfig).toBe(before);
});

test('settings that replace the configuration can be wrapped again', () => {
  const lineWrap = new LineWrap();
  const notebook = notebookWith({ lineWrap: false });
  lineWrap.enable(notebook);

  notebook.editorConfig = notebookWith({ lineWrap: false }).editorConfig;
  lineWrap.enable(notebook);
  expect(notebook.editorConfig.code.lineWrap).toBe(true);

  lineWrap.restore(notebook);
  expect(notebook.editorConfig.code.lineWrap).toBe(false);
});
