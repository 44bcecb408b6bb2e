import type { ICellModel } from '@jupyterlab/cells';
import type { NotebookPanel, INotebookModel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { readMetadata, writeMetadata } from './cellmetadata';
import { CellOrder } from './cellorder';
import { applyEdit, shownCells } from './celledits';
import { codeCells, findCell } from './cells';
import { buryWidgets } from './deadwidgets';
import { KernelComm } from './kernelcomm';
import { PROTOCOL_VERSION, parseMessage } from './protocol';
import type {
  ICellEntry,
  IEditMessage,
  ILookMessage,
  IOpening,
  IOutputsMessage,
  IPicture,
  IReadyMessage,
  ISessionMessage,
  ISteeringMessage,
  ITurnMessage,
  PageMessage
} from './protocol';
import { Repaint } from './repaint';

/**
 * What an open notebook and its Crush kernel tell each other.
 *
 * The page tells which cells there are, and in which order; the kernel tells what they are to
 * keep, and what they show where the page missed it. All views of a notebook share one.
 */
export class NotebookSession implements IDisposable {
  /** The notebook must be ready: its cells are told at once. */
  constructor(context: NotebookPanel['context']) {
    this._context = context;
    this._model = context.model;
    this._order = new CellOrder(this._model);
    this._model.cells.changed.connect(this._onCellsChanged, this);
    this._model.stateChanged.connect(this._onStateChanged, this);
    context.saveState.connect(this._onSaveState, this);
    context.pathChanged.connect(this._onPathChanged, this);
    this._comm = new KernelComm({
      sessionContext: context.sessionContext,
      greeting: () => this._greeting(),
      receive: data => this._receive(data),
      gone: () => this._onGone()
    });
  }

  /** The ids of the cells whose context has changed since they ran. */
  get stale(): ReadonlySet<string> {
    return this._stale;
  }

  /** Emitted when `stale` is another set. */
  get staleChanged(): ISignal<this, void> {
    return this._staleChanged;
  }

  /** The cell whose turn takes messages now, if any. */
  get steering(): string | null {
    return this._steering;
  }

  /** Emitted when `steering` is another cell. */
  get steeringChanged(): ISignal<this, void> {
    return this._steeringChanged;
  }

  /** Say something to the turn of a cell that is running. */
  say(cellId: string, text: string): void {
    this._comm.send({ method: 'say', cell_id: cellId, text });
  }

  /** Emitted before cells are painted. */
  get painting(): ISignal<this, ReadonlySet<ICellModel>> {
    return this._painting;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    this._comm.dispose();
    this._setStale([]);
    this._setSteering(null);
    Signal.clearData(this);
  }

  /** Tell what changed in the list of cells, before anything else is sent. */
  tellCells(): void {
    this._isScheduled = false;
    if (this._comm.isOpen && !this._model.isDisposed) {
      this._order
        .next()
        .forEach(cells => this._comm.send({ method: 'cells', cells }));
    }
  }

  /**
   * Save what the notebook holds, so that a cell which begins to run is in the file whatever
   * happens to this page; does nothing where nothing changed or saving is not ours to do.
   */
  save(): void {
    if (this._isSaving || !this._model.dirty || !this._isWritable) {
      return;
    }
    // The server saves what people edit together.
    if (!this._model.collaborative) {
      // JupyterLab tells the user of a failure itself.
      this._context.save().catch(() => undefined);
    }
  }

  private get _isWritable(): boolean {
    const { contentsModel } = this._context;
    return !this._model.readOnly && contentsModel?.writable === true;
  }

  private _greeting(): readonly [IOpening, ...PageMessage[]] {
    this._alive.clear();
    this._order.reset();
    this._isStaleHeard = false;
    this._setSteering(null);
    const [cells, ...more] = this._order.next() as [
      ICellEntry[],
      ...ICellEntry[][]
    ];
    return [
      {
        version: PROTOCOL_VERSION,
        path: this._context.localPath || null,
        notebook: readMetadata(this._model),
        cells,
        is_headless: false,
        edits: true
      },
      ...more.map(cells => ({ method: 'cells', cells }) as const)
    ];
  }

  private _receive(data: unknown): void {
    const message = this._model.isDisposed ? null : parseMessage(data);
    switch (message?.method) {
      case 'turn':
        return this._onTurn(message);
      case 'session':
        return this._onSession(message);
      case 'outputs':
        return this._onOutputs(message);
      case 'stale':
        this._isStaleHeard = true;
        return this._setStale(message.cellIds);
      case 'steering':
        return this._onSteering(message);
      case 'look':
        return this._onLook(message);
      case 'edit':
        return this._onEdit(message);
      case 'ready':
        return this._onReady(message);
      default:
    }
  }

  private _onTurn({ cellId, record, source }: ITurnMessage): void {
    const cell = findCell(this._model, cellId);
    if (cell) {
      if (source !== null && source !== cell.sharedModel.getSource()) {
        cell.sharedModel.setSource(source);
      }
      this._write(cell, record);
      this._order.noteWritten(cell, record);
      this._comm.send({
        method: 'ack',
        cell_id: cellId,
        turn: record?.turn ?? null,
        revision: record?.revision ?? null
      });
    }
  }

  private _onSession({ record, revision }: ISessionMessage): void {
    this._write(this._model, record);
    this._comm.send({ method: 'ack', session: revision });
  }

  private _write(...[model, record]: Parameters<typeof writeMetadata>): void {
    writeMetadata(model, record);
    this._wroteSinceSave = true;
  }

  private _onOutputs({ cells }: IOutputsMessage): void {
    for (const { cellId, isRunning } of cells) {
      if (isRunning) {
        this._alive.add(cellId);
      } else {
        this._alive.delete(cellId);
      }
    }
    // Where others are in the notebook too, the outputs reach this page through them.
    if (!Private.hasCompany(this._model)) {
      this._paint(cells);
    }
  }

  private _paint(pictures: readonly IPicture[]): void {
    const byId = new Map(codeCells(this._model).map(cell => [cell.id, cell]));
    const due = pictures.flatMap(picture => {
      const cell = byId.get(picture.cellId);
      return cell && this._repaint.isDue(cell, picture)
        ? { cell, picture }
        : [];
    });
    if (due.length > 0) {
      this._painting.emit(new Set(due.map(({ cell }) => cell)));
      due.forEach(({ cell, picture }) => this._repaint.show(cell, picture));
      this._wroteSinceSave = true;
    }
  }

  private _onSteering({ cellId, isOpen }: ISteeringMessage): void {
    if (isOpen) {
      this._setSteering(cellId);
    } else if (cellId === this._steering) {
      this._setSteering(null);
    }
  }

  private _onLook({ id }: ILookMessage): void {
    const parts = shownCells(this._model);
    parts.forEach((cells, index) => {
      const is_last = index === parts.length - 1;
      this._comm.send({ method: 'looked', id, cells, is_last });
    });
  }

  private _onEdit({ id, edit }: IEditMessage): void {
    const refusal = this._isWritable
      ? applyEdit(this._model, edit)
      : 'read-only';
    // First, so that the kernel knows the order when it goes on.
    this.tellCells();
    this._comm.send({ method: 'edited', id, refusal });
  }

  /** Widgets of an earlier kernel process are dead; those of running cells are not. */
  private _onReady({ kernel }: IReadyMessage): void {
    if (!this._isStaleHeard) {
      this._setStale([]);
    }
    if (kernel !== this._kernel) {
      this._kernel = kernel;
      buryWidgets(
        codeCells(this._model).filter(
          cell => !this._alive.has(cell.id) && !this._repaint.isRunByPage(cell)
        )
      );
    }
  }

  private _onGone(): void {
    this._setSteering(null);
    if (!this._model.isDisposed) {
      const cells = codeCells(this._model);
      this._repaint.stop(cells);
      buryWidgets(cells);
    }
  }

  private _setStale(ids: Iterable<string>): void {
    const stale = new Set(ids);
    if (Private.isSame(stale, this._stale)) {
      return;
    }
    this._stale = stale;
    this._staleChanged.emit();
  }

  private _setSteering(cellId: string | null): void {
    if (cellId !== this._steering) {
      this._steering = cellId;
      this._steeringChanged.emit();
    }
  }

  private _onCellsChanged(): void {
    // A change can come in parts, and a cell that moves is gone for a moment.
    if (!this._isScheduled) {
      this._isScheduled = true;
      queueMicrotask(() => this._isScheduled && this.tellCells());
    }
  }

  private _onPathChanged(): void {
    this._comm.send({ method: 'path', path: this._context.localPath });
  }

  /** A save holds what was there when it began. */
  private _onSaveState(_: unknown, state: Private.SaveState): void {
    this._isSaving = state === 'started';
    if (state === 'started') {
      this._wroteSinceSave = false;
      this._comm.send({ method: 'saving' });
    } else if (state === 'completed' && !this._model.dirty) {
      this._comm.send({ method: 'saved' });
      // JupyterLab takes for saved what was written meanwhile, and would not save it.
      this._model.dirty = this._wroteSinceSave;
    }
  }

  /** The server saves what people edit together, and tells by this state only. */
  private _onStateChanged(
    _: INotebookModel,
    { name, newValue }: { name: string; newValue?: unknown }
  ): void {
    if (name === 'dirty' && newValue === false && this._model.collaborative) {
      this._comm.send({ method: 'saved' });
    }
  }

  private readonly _context: NotebookPanel['context'];
  private readonly _model: INotebookModel;
  private readonly _order: CellOrder;
  private readonly _comm: KernelComm;
  private readonly _repaint = new Repaint();
  /** The cells that run, as the kernel says. */
  private readonly _alive = new Set<string>();
  private readonly _painting = new Signal<this, ReadonlySet<ICellModel>>(this);
  private readonly _staleChanged = new Signal<this, void>(this);
  private readonly _steeringChanged = new Signal<this, void>(this);
  private _stale: ReadonlySet<string> = new Set();
  private _steering: string | null = null;
  private _isStaleHeard = false;
  private _kernel = '';
  private _isSaving = false;
  private _wroteSinceSave = false;
  private _isScheduled = false;
  private _isDisposed = false;
}

namespace Private {
  export type SaveState = Parameters<
    Parameters<NotebookPanel['context']['saveState']['connect']>[0]
  >[1];

  /** Whether somebody else has the notebook open, and shares what changes in it. */
  export function hasCompany(model: INotebookModel): boolean {
    const { awareness } = model.sharedModel as { awareness?: IAwareness };
    // The server takes part as well, without a user.
    const others = [...(awareness?.getStates() ?? [])].filter(
      ([client, state]) => client !== awareness?.clientID && 'user' in state
    );
    return model.collaborative === true && others.length > 0;
  }

  export function isSame(
    one: ReadonlySet<string>,
    other: ReadonlySet<string>
  ): boolean {
    return one.size === other.size && [...one].every(id => other.has(id));
  }

  interface IAwareness {
    readonly clientID: number;
    getStates(): ReadonlyMap<number, object>;
  }
}
