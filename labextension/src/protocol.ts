import type * as nbformat from '@jupyterlab/nbformat';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { parseOutputs } from './outputs';
import { isCount, isName, isObject, plainCopy } from './untrusted';

/** The comm that the page opens; `kernel/pagemessages.py` is the other end. */
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
}

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

/** What the kernel tells the page. */
export type KernelMessage =
  | ITurnMessage
  | ISessionMessage
  | IOutputsMessage
  | IStaleMessage
  | ISteeringMessage
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

  function isTurnRecord(record: unknown): record is ITurnRecord {
    return isObject(record) && isName(record.turn) && isCount(record.revision);
  }
}
