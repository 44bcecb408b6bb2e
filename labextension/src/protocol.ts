import type * as nbformat from '@jupyterlab/nbformat';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { parseOutputs } from './outputs';
import { isCount, isName, isObject, plainCopy } from './untrusted';

/** The comm that the page opens; `kernel/pages/messages.py` is the other end. */
export const COMM_TARGET = 'crush.notebook';

/** What the metadata of a cell and of the notebook have of ours. */
export const METADATA_KEY = 'crush';

/** A turn in the outputs of its cell, where nobody writes the cell's metadata. */
export const TURN_MIME_TYPE = 'application/vnd.crush.turn.v1+json';

export const PROTOCOL_VERSION = 1;

/** A cell as the kernel hears of it. */
export interface ICellEntry {
  readonly id: string;
  readonly type: nbformat.CellType;
  /** What the metadata of a cell that is new to the kernel have of ours. */
  readonly crush?: ReadonlyPartialJSONObject;
  /** The turn in its outputs, of a new cell that has none in its metadata. */
  readonly record?: ReadonlyPartialJSONObject;
  /** The prompt number of a new cell; absent of one that the kernel knows. */
  readonly execution_count?: number | null;
}

/** With what the comm is opened. */
export interface IOpening {
  readonly version: typeof PROTOCOL_VERSION;
  readonly path: string | null;
  readonly notebook: ReadonlyPartialJSONObject | null;
  readonly cells: readonly ICellEntry[];
  readonly is_headless: false;
  /** That the page answers `look` and `edit`. */
  readonly edits: true;
}

/** A cell as the model is to see it. */
export interface IShownCell {
  readonly id: string;
  readonly type: nbformat.CellType;
  readonly source: string;
  /** How many outputs it shows. */
  readonly outputs: number;
  readonly execution_count: number | null;
  /** Whether it runs or waits to be run. */
  readonly is_busy: boolean;
}

/** Why a cell is not changed as the kernel asks. */
export type Refusal =
  /** There is no such cell. */
  | 'unknown'
  /** Another cell has the id of the new one. */
  | 'taken'
  /** It says something else than the kernel knows. */
  | 'changed'
  /** It runs or waits to be run. */
  | 'busy'
  /** The user has said that it is not to be changed. */
  | 'locked'
  /** Nothing that is changed here would be saved. */
  | 'read-only';

/** What the page tells the kernel. */
export type PageMessage =
  | { readonly method: 'cells'; readonly cells: readonly ICellEntry[] }
  | {
      readonly method: 'ack';
      readonly cell_id: string;
      /** Absent if the turn was deleted. */
      readonly turn: string | null;
      readonly revision: number | null;
    }
  | { readonly method: 'ack'; readonly session: number }
  /** What is acknowledged by now will be in the file, unless the save fails. */
  | { readonly method: 'saving' }
  | { readonly method: 'saved' }
  /** Something for the turn of a cell that is running. */
  | { readonly method: 'say'; readonly cell_id: string; readonly text: string }
  /** A part of the answer to `look`, in order. */
  | {
      readonly method: 'looked';
      readonly id: string;
      readonly cells: readonly IShownCell[];
      readonly is_last: boolean;
    }
  /** The answer to `edit`; it is done where there is no refusal. */
  | {
      readonly method: 'edited';
      readonly id: string;
      readonly refusal: Refusal | null;
    }
  | { readonly method: 'path'; readonly path: string };

/** A turn to keep with its cell; without a record the cell keeps none. */
export interface ITurnMessage {
  readonly method: 'turn';
  readonly cellId: string;
  readonly record: ITurnRecord | null;
  /** What the cell is to say; `null` leaves its text alone. */
  readonly source: string | null;
}

/** A turn as it is kept; only these fields matter to the page. */
export interface ITurnRecord extends ReadonlyPartialJSONObject {
  readonly turn: string;
  readonly revision: number;
}

/** What the notebook keeps of the session. */
export interface ISessionMessage {
  readonly method: 'session';
  readonly record: ReadonlyPartialJSONObject;
  readonly revision: number;
}

/** What cells show, of which this page missed a part. */
export interface IOutputsMessage {
  readonly method: 'outputs';
  readonly cells: readonly IPicture[];
}

/** What one cell shows. */
export interface IPicture {
  readonly cellId: string;
  readonly outputs: readonly nbformat.IOutput[];
  /** `null` while it runs. */
  readonly executionCount: number | null;
  readonly isRunning: boolean;
}

/** All cells whose context has changed since they ran. */
export interface IStaleMessage {
  readonly method: 'stale';
  readonly cellIds: readonly string[];
}

/** Whether the turn of a cell that runs takes messages now. */
export interface ISteeringMessage {
  readonly method: 'steering';
  readonly cellId: string;
  readonly isOpen: boolean;
}

/** The answer to the opening, after all that followed from it. */
export interface IReadyMessage {
  readonly method: 'ready';
  /** The id of the kernel process: another one after a restart. */
  readonly kernel: string;
}

/** Tell which cells there are, and what they say. */
export interface ILookMessage {
  readonly method: 'look';
  readonly id: string;
}

/** Change one cell. */
export interface IEditMessage {
  readonly method: 'edit';
  readonly id: string;
  readonly edit: ICellEdit;
}

/** How one cell is to change; `after` is the cell above its place, empty for the top. */
export type ICellEdit =
  | {
      readonly action: 'insert';
      readonly cellId: string;
      readonly cellType: nbformat.CellType;
      readonly source: string;
      readonly after: string;
    }
  | {
      readonly action: 'replace';
      readonly cellId: string;
      readonly cellType: nbformat.CellType;
      readonly source: string;
      /** What it must say for that. */
      readonly former: string;
    }
  | {
      readonly action: 'delete';
      readonly cellId: string;
      readonly former: string;
    }
  | {
      readonly action: 'move';
      readonly cellId: string;
      readonly after: string;
    };

/** What the kernel tells the page. */
export type KernelMessage =
  | ITurnMessage
  | ISessionMessage
  | IOutputsMessage
  | IStaleMessage
  | ISteeringMessage
  | ILookMessage
  | IEditMessage
  | IReadyMessage;

/** Return what `data` of a comm message says; nothing if it is not of this protocol. */
export function parseMessage(data: unknown): KernelMessage | null {
  if (!isObject(data)) {
    return null;
  }
  switch (data.method) {
    case 'turn':
      return Private.parseTurn(data);
    case 'session':
      return Private.parseSession(data);
    case 'outputs':
      return Array.isArray(data.cells)
        ? { method: 'outputs', cells: data.cells.flatMap(Private.parsePicture) }
        : null;
    case 'stale':
      return Array.isArray(data.cells)
        ? { method: 'stale', cellIds: data.cells.filter(isName) }
        : null;
    case 'steering':
      return isName(data.cell_id) && typeof data.is_open === 'boolean'
        ? { method: 'steering', cellId: data.cell_id, isOpen: data.is_open }
        : null;
    case 'look':
      return isName(data.id) ? { method: 'look', id: data.id } : null;
    case 'edit':
      return Private.parseEdit(data);
    case 'ready':
      return isName(data.kernel)
        ? { method: 'ready', kernel: data.kernel }
        : null;
    default:
      return null;
  }
}

namespace Private {
  type Data = ReadonlyPartialJSONObject;

  export function parseTurn(data: Data): ITurnMessage | null {
    const { cell_id: cellId, record } = data;
    if (!isName(cellId)) {
      return null;
    }
    const source = typeof data.source === 'string' ? data.source : null;
    if (record === null) {
      return { method: 'turn', cellId, record: null, source };
    }
    return isTurnRecord(record)
      ? { method: 'turn', cellId, record: plainCopy(record), source }
      : null;
  }

  export function parseSession(data: Data): ISessionMessage | null {
    const { record, revision } = data;
    return isObject(record) && isCount(revision)
      ? { method: 'session', record: plainCopy(record), revision }
      : null;
  }

  export function parsePicture(cell: unknown): IPicture[] {
    if (
      !isObject(cell) ||
      !isName(cell.cell_id) ||
      !Array.isArray(cell.outputs) ||
      typeof cell.is_running !== 'boolean'
    ) {
      return [];
    }
    return [
      {
        cellId: cell.cell_id,
        outputs: parseOutputs(cell.outputs),
        executionCount:
          isCount(cell.execution_count) && !cell.is_running
            ? cell.execution_count
            : null,
        isRunning: cell.is_running
      }
    ];
  }

  export function parseEdit(data: Data): IEditMessage | null {
    const edit = parseCellEdit(data);
    return isName(data.id) && edit
      ? { method: 'edit', id: data.id, edit }
      : null;
  }

  function parseCellEdit(data: Data): ICellEdit | null {
    const { action, cell_id: cellId, cell_type: cellType } = data;
    const { source, former, after } = data;
    if (!isName(cellId)) {
      return null;
    }
    switch (action) {
      case 'insert':
        return isCellType(cellType) && isText(source) && isText(after)
          ? { action, cellId, cellType, source, after }
          : null;
      case 'replace':
        return isCellType(cellType) && isText(source) && isText(former)
          ? { action, cellId, cellType, source, former }
          : null;
      case 'delete':
        return isText(former) ? { action, cellId, former } : null;
      case 'move':
        return isText(after) ? { action, cellId, after } : null;
      default:
        return null;
    }
  }

  function isText(value: unknown): value is string {
    return typeof value === 'string';
  }

  function isCellType(value: unknown): value is nbformat.CellType {
    return value === 'code' || value === 'markdown' || value === 'raw';
  }

  function isTurnRecord(record: unknown): record is ITurnRecord {
    return isObject(record) && isName(record.turn) && isCount(record.revision);
  }
}
