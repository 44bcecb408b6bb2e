import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

/**
 * Offers, below the cell of one view whose turn is running, to say something to the turn.
 *
 * It is no widget of the kernel: outputs come and go beside it, and what is being typed stays.
 */
export class SteeringBox implements IDisposable {
  constructor(options: SteeringBox.IOptions) {
    this._options = options;
    options.notebook.model?.cells.changed.connect(this._onCellsChanged, this);
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
    this._remove();
  }

  /**
   * Offer it below the cell with this id, or nowhere. A box in which something was typed and
   * not sent stays until it is thrown away or another turn runs.
   */
  show(cellId: string | null): void {
    if (cellId === null) {
      if (this._form?.text) {
        this._form.end(this._options.labels);
      } else {
        this._remove();
      }
    } else if (cellId !== this._cellId || this._form?.isOver) {
      this._remove();
      this._cellId = cellId;
      this._form = new Private.Form(this._options.labels, {
        send: text => this._options.say(cellId, text),
        discard: () => this._remove()
      });
      this._place();
    }
  }

  /** A cell that moved is drawn anew, without its box, once all have heard of it. */
  private _onCellsChanged(): void {
    queueMicrotask(() => this._place());
  }

  /** Put the box at the end of its cell, unless it is there: it would lose the focus. */
  private _place(): void {
    const { notebook } = this._options;
    if (this._form && !notebook.isDisposed) {
      const cell = notebook.widgets.find(
        ({ model }: Cell<ICellModel>) => model.id === this._cellId
      );
      if (cell && this._form.node.parentNode !== cell.node) {
        // Last, since Lumino finds the place of a part by its number.
        cell.node.append(this._form.node);
      }
    }
  }

  private _remove(): void {
    const node = this._form?.node;
    const hadFocus = node?.contains(document.activeElement);
    node?.remove();
    this._form = null;
    this._cellId = null;
    if (hadFocus) {
      this._options.refocus();
    }
  }

  private readonly _options: SteeringBox.IOptions;
  private _cellId: string | null = null;
  private _form: Private.Form | null = null;
  private _isDisposed = false;
}

export namespace SteeringBox {
  export interface IOptions {
    readonly notebook: Notebook;
    readonly labels: ILabels;
    /** Say `text` to the turn of a cell. */
    readonly say: (cellId: string, text: string) => void;
    /** Put the focus where it belongs when the box that had it is gone. */
    readonly refocus: () => void;
  }

  /** Texts, translated. */
  export interface ILabels {
    /** What the box is for. */
    readonly steer: string;
    /** On the button. */
    readonly send: string;
    /** On the button, once the turn is over. */
    readonly discard: string;
    /** Beside what was typed and not sent when the turn ended. */
    readonly unsent: string;
  }
}

namespace Private {
  interface IActions {
    readonly send: (text: string) => void;
    readonly discard: () => void;
  }

  /** A line to type in, and a button. */
  export class Form {
    constructor(labels: SteeringBox.ILabels, actions: IActions) {
      this._input.type = 'text';
      this._input.placeholder = labels.steer;
      this._input.setAttribute('aria-label', labels.steer);
      this._input.autocomplete = 'off';
      this._button.type = 'submit';
      this._button.textContent = labels.send;
      this.node.className = 'crush-steering';
      // Letters are no shortcuts of the notebook here.
      this.node.dataset.lmSuppressShortcuts = 'true';
      this.node.append(this._input, this._button, this._note);
      this._note.setAttribute('role', 'status');
      // JupyterLab keeps a line break that is typed from submitting the form.
      this._input.addEventListener('keydown', event => {
        if (event.key === 'Enter' && !event.isComposing) {
          event.preventDefault();
          if (!event.repeat && !this.isOver) {
            this.node.requestSubmit();
          }
        }
      });
      this.node.addEventListener('submit', event => {
        event.preventDefault();
        if (this.isOver) {
          actions.discard();
        } else if (this.text) {
          actions.send(this.text);
          this._input.value = '';
        }
      });
    }

    readonly node = document.createElement('form');
    isOver = false;

    /** What was typed and not sent. */
    get text(): string {
      return this._input.value.trim();
    }

    /** Say that what was typed cannot be sent any more; it can still be copied. */
    end(labels: SteeringBox.ILabels): void {
      this.isOver = true;
      this._input.readOnly = true;
      this._button.textContent = labels.discard;
      this._note.textContent = labels.unsent;
    }

    private readonly _input = document.createElement('input');
    private readonly _button = document.createElement('button');
    private readonly _note = document.createElement('span');
  }
}
