import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { readMetadata } from './cellmetadata';
import { isCode } from './cells';
import { TURN_MIME_TYPE } from './protocol';
import type { ICellEntry } from './protocol';
import { isObject } from './untrusted';

/**
 * How many characters of records go into one message: Jupyter Server ends the connection
 * where a message has more than 10 MiB, and a character takes six bytes at most.
 */
const BATCH_CHARS = 1_500_000;

/**
 * Knows which cells the kernel was told of, and says what it has to hear next.
 *
 * What a cell keeps is told once. It is told again if another cell takes its place that has
 * the same id and keeps another turn, as when the notebook is read anew from its file.
 */
export class CellOrder {
  constructor(model: INotebookModel, batchChars = BATCH_CHARS) {
    this._model = model;
    this._batchChars = batchChars;
  }

  /** Forget what was told: the next kernel knows nothing. */
  reset(): void {
    this._told.clear();
    this._order = '';
  }

  /**
   * Return the lists to tell, first to last; none if nothing has changed.
   *
   * There is more than one if too much is new for one message: then some of the new cells
   * are missing from all but the last.
   */
  next(): ICellEntry[][] {
    const cells = [...this._model.cells];
    const news = this._learn(cells);
    const order = JSON.stringify(cells.map(Private.plainEntry));
    if (order === this._order && news.size === 0) {
      return [];
    }
    this._order = order;
    const late = new Set(news.keys());
    return this._batches([...news.values()]).map(batch => {
      const full = new Map(batch.map(entry => [entry.id, entry]));
      full.forEach((_, id) => late.delete(id));
      return cells
        .filter(({ id }) => !late.has(id))
        .map(cell => full.get(cell.id) ?? Private.plainEntry(cell));
    });
  }

  /** Take note that the kernel knows what `cell` keeps now: it has sent it. */
  noteWritten(
    cell: ICellModel,
    record: ReadonlyPartialJSONObject | null
  ): void {
    this._told.set(cell.id, { cell, age: Private.age(record) });
  }

  /** Return what is new of `cells`, by id, and know it from now on. */
  private _learn(cells: readonly ICellModel[]): Map<string, ICellEntry> {
    const before = new Map(this._told);
    const news = new Map<string, ICellEntry>();
    this._told.clear();
    for (const cell of cells) {
      const told = before.get(cell.id);
      if (told?.cell === cell) {
        this._told.set(cell.id, told);
        continue;
      }
      const entry = Private.fullEntry(cell);
      const age = Private.age(entry.crush ?? entry.record ?? null);
      this._told.set(cell.id, { cell, age });
      if (told?.age !== age) {
        news.set(cell.id, entry);
      }
    }
    return news;
  }

  /** Divide `entries` by size; there is one batch at least. */
  private _batches(entries: readonly ICellEntry[]): ICellEntry[][] {
    let batch: ICellEntry[] = [];
    let room = this._batchChars;
    const batches = [batch];
    for (const entry of entries) {
      const size = Private.sizeOf(entry);
      if (size > room && batch.length > 0) {
        batch = [];
        room = this._batchChars;
        batches.push(batch);
      }
      room -= size;
      batch.push(size > this._batchChars ? Private.bareEntry(entry) : entry);
    }
    return batches;
  }

  private readonly _model: INotebookModel;
  private readonly _batchChars: number;
  private readonly _told = new Map<string, Private.ITold>();
  private _order = '';
}

namespace Private {
  export interface ITold {
    readonly cell: ICellModel;
    readonly age: string;
  }

  export function plainEntry({ id, type }: ICellModel): ICellEntry {
    return { id, type };
  }

  export function fullEntry(cell: ICellModel): ICellEntry {
    const entry = {
      id: cell.id,
      type: cell.type,
      execution_count: isCode(cell) ? cell.executionCount : null
    };
    const crush = readMetadata(cell);
    if (crush) {
      return { ...entry, crush };
    }
    const record = recordOf(cell);
    return record ? { ...entry, record } : entry;
  }

  /** Return `entry` without records: no message could hold them. */
  export function bareEntry(entry: ICellEntry): ICellEntry {
    const { id, type, execution_count } = entry;
    return { id, type, execution_count };
  }

  /** What tells one state of a turn from another. */
  export function age(record: ReadonlyPartialJSONObject | null): string {
    return record ? JSON.stringify([record.turn, record.revision]) : '';
  }

  /** About as many characters as `value` has in a message, without writing it. */
  export function sizeOf(value: unknown): number {
    if (typeof value === 'string') {
      return value.length + 3;
    }
    if (typeof value !== 'object' || value === null) {
      return 8;
    }
    return Object.entries(value).reduce(
      (size, [key, item]) => size + key.length + 4 + sizeOf(item),
      2
    );
  }

  function recordOf(cell: ICellModel): ReadonlyPartialJSONObject | null {
    if (isCode(cell)) {
      for (let index = cell.outputs.length - 1; index >= 0; index--) {
        const { data } = cell.outputs.get(index).toJSON();
        const record: unknown = isObject(data) ? data[TURN_MIME_TYPE] : null;
        if (isObject(record)) {
          return record;
        }
      }
    }
    return null;
  }
}
