import type * as nbformat from '@jupyterlab/nbformat';
import { NotebookModel } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

/** Return a code cell as it is in a file. */
export function codeCell(
  id: string,
  rest: Partial<nbformat.ICodeCell> = {}
): nbformat.ICodeCell {
  return {
    cell_type: 'code',
    id,
    source: `prompt of ${id}`,
    metadata: {},
    outputs: [],
    execution_count: null,
    ...rest
  } as nbformat.ICodeCell;
}

/** Return an output of `data`. */
export function display(
  data: nbformat.IMimeBundle,
  metadata: nbformat.OutputMetadata = {}
): nbformat.IDisplayData {
  return { output_type: 'display_data', data, metadata };
}

/** Return a real notebook with `cells`, as it is when it was just loaded. */
export function notebookOf(
  cells: readonly nbformat.ICell[],
  options: NotebookModel.IOptions = {}
): NotebookModel {
  const model = new NotebookModel(options);
  model.fromJSON({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { kernelspec: { name: 'crush', display_name: 'Crush' } },
    cells: [...cells]
  } as nbformat.INotebookContent);
  model.sharedModel.clearUndoHistory();
  model.dirty = false;
  return model;
}

/** A comm that keeps what the page sends. */
export class FakeComm {
  constructor(private readonly _kernel: FakeKernel) {}

  readonly sent: JSONObject[] = [];
  opening: JSONObject | null = null;
  isDisposed = false;
  isClosed = false;
  onMsg: (message: object) => void = () => undefined;
  onClose: (message: object) => void = () => undefined;

  open(data: JSONObject): void {
    this._kernel.fail();
    this.opening = data;
  }

  send(data: JSONObject): void {
    this._kernel.fail();
    this.sent.push(data);
  }

  close(): void {
    this._kernel.fail();
    this.isClosed = true;
    this.isDisposed = true;
    this.onClose({});
  }

  /** Let the kernel process `session` say `data`. */
  hear(data: unknown, session = 'process'): void {
    this.onMsg({ header: { session }, content: { data } });
  }

  /** Return what was sent with `method`. */
  sentOf(method: string): JSONObject[] {
    return this.sent.filter(message => message.method === method);
  }
}

/** A connection to a kernel that has comms. */
export class FakeKernel {
  constructor(
    implementation: string | Promise<string> = 'crush',
    readonly name = 'python3'
  ) {
    this.info = Promise.resolve(implementation).then(implementation => ({
      implementation
    }));
  }

  readonly info: Promise<{ implementation: string }>;
  readonly comms: FakeComm[] = [];
  isDisposed = false;
  hasComms = true;

  /** The comm that was opened last. */
  get comm(): FakeComm {
    return this.comms.at(-1)!;
  }

  createComm(target: string): FakeComm {
    expect(target).toBe('crush.notebook');
    if (!this.hasComms) {
      throw new Error('Comms are disabled on this kernel connection');
    }
    const comm = new FakeComm(this);
    this.comms.push(comm);
    return comm;
  }

  /** What JupyterLab does when the process behind the connection ends. */
  clear(): void {
    this.comms.forEach(comm => (comm.isDisposed = true));
  }

  fail(): void {
    if (this.isDisposed) {
      throw new Error('Kernel is dead');
    }
  }
}

/** What a notebook has of its kernel, with real signals. */
class FakeSessionContext {
  constructor(public kernel: FakeKernel | null) {}

  readonly ready = Promise.resolve();
  readonly kernelChanged = new Signal<this, object>(this);
  readonly statusChanged = new Signal<this, string>(this);
  readonly connectionStatusChanged = new Signal<this, string>(this);
  readonly iopubMessage = new Signal<this, object>(this);

  get session() {
    return this.kernel ? { kernel: this.kernel } : null;
  }
}

/** The context of a notebook, with real signals and a kernel to switch. */
export class FakeContext {
  constructor(
    readonly model: NotebookModel,
    kernel: FakeKernel | null = null
  ) {
    this.sessionContext = new FakeSessionContext(kernel);
  }

  readonly ready = Promise.resolve();
  readonly sessionContext: FakeSessionContext;
  readonly saveState = new Signal<this, string>(this);
  readonly pathChanged = new Signal<this, string>(this);
  path = 'folder/notebook.ipynb';
  contentsModel: { writable: boolean } | null = { writable: true };

  get localPath(): string {
    return this.path;
  }

  /** Have another kernel, or none. */
  setKernel(newValue: FakeKernel | null): void {
    const oldValue = this.sessionContext.kernel;
    if (oldValue && oldValue !== newValue) {
      oldValue.isDisposed = true;
      oldValue.clear();
    }
    this.sessionContext.kernel = newValue;
    this._emitKernel(oldValue, newValue);
  }

  setStatus(status: string): void {
    this.sessionContext.statusChanged.emit(status);
  }

  setConnection(status: string): void {
    this.sessionContext.connectionStatusChanged.emit(status);
  }

  /** Let the kernel process `session` say something; without a parent it is the server. */
  hear(
    session: string,
    msg_type = 'status',
    parent_header: object = { msg_id: 'm1' }
  ): void {
    this.sessionContext.iopubMessage.emit({
      header: { session, msg_type },
      parent_header
    });
  }

  /** What happens when the user restarts the kernel, in its order. */
  restart(): void {
    const { kernel } = this.sessionContext;
    this.setStatus('restarting');
    kernel?.clear();
    this.setConnection('connecting');
    this.setConnection('connected');
    this.setStatus('starting');
    this.setStatus('idle');
    this._emitKernel(kernel, kernel);
  }

  async save(during: () => void = () => undefined): Promise<void> {
    this.saveState.emit('started');
    during();
    this.model.dirty = false;
    this.saveState.emit('completed');
  }

  rename(path: string): void {
    this.path = path;
    this.pathChanged.emit(path);
  }

  asContext(): NotebookPanel['context'] {
    return this as unknown as NotebookPanel['context'];
  }

  private _emitKernel(
    oldValue: FakeKernel | null,
    newValue: FakeKernel | null
  ): void {
    this.sessionContext.kernelChanged.emit({
      name: 'kernel',
      oldValue,
      newValue
    });
  }
}
