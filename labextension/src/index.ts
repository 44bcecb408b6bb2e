import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { notebookPlugin } from './notebook';
import { permissionKeysPlugin } from './permissionkeys';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  notebookPlugin,
  permissionKeysPlugin
];

export default plugins;
