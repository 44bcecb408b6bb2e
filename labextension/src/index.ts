import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { notebookPlugin } from './notebook';
import { permissionKeysPlugin } from './permissionkeys';
import { deadWidgetsPlugin, sessionPlugin } from './persistence';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  notebookPlugin,
  permissionKeysPlugin,
  sessionPlugin,
  deadWidgetsPlugin
];

export default plugins;
