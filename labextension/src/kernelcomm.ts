import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { isCrush, isNamedCrush, kernelOf } from './crushkernel';
import { COMM_TARGET } from './protocol';
import type { IOpening, PageMessage } from './protocol';

/**
 * Keeps one comm open to the Crush kernel of a notebook: opens it when there is such a
 * kernel, anew for each kernel process, and anew after the connection was lost, since the
 * server may have dropped what was said meanwhile.
 *
 * A kernel that closes the comm does not want it, and is not asked again.
 */
export class KernelComm implements IDisposable {
  constructor(options: KernelComm.IOptions) {
    this._options = options;
    const { sessionContext } = options;
    sessionContext.kernelChanged.connect(this._onKernelChanged, this);
    sessionContext.statusChanged.connect(this._onStatusChanged, this);
    sessionContext.connectionStatusChanged.connect(
      this._onConnectionChanged,
      this
    );
    sessionContext.iopubMessage.connect(this._onIOPubMessage, this);
    this._open();
  }

  get isOpen(): boolean {
    return this._comm !== null && !this._comm.isDisposed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Close the comm, and open none again. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    this._close();
  }

  /** Tell the kernel `message`; does nothing if the comm is not open. */
  send(message: PageMessage): void {
    if (this._comm && this.isOpen) {
      this._comm.send(message as unknown as JSONObject);
    }
  }

  /**
   * Open the comm if there is none, at once if the kernel is known to be Crush: what is sent
   * to a kernel that starts waits in order, and a cell may be run next.
   */
  private _open(): void {
    const kernel = kernelOf(this._options.sessionContext);
    // While it restarts, it is the old process that hears; the new one gets a connection.
    if (this._isDisposed || this.isOpen || this._isRestarting || !kernel) {
      return;
    }
    if (kernel === this._known || isNamedCrush(kernel)) {
      this._openOn(kernel);
    } else if (kernel !== this._asked) {
      this._asked = kernel;
      void isCrush(kernel).then(answer => this._onAnswer(kernel, answer));
    }
  }

  private _onAnswer(kernel: Kernel.IKernelConnection, answer: boolean): void {
    if (kernel === this._asked) {
      this._asked = null;
      this._known = answer ? kernel : null;
    }
    if (answer) {
      this._open();
    }
  }

  private _openOn(kernel: Kernel.IKernelConnection): void {
    if (kernel.isDisposed || this._isRefused) {
      return;
    }
    try {
      this._comm = this._opened(kernel.createComm(COMM_TARGET));
    } catch {
      // It has died, or a connection of another notebook in this page has its comms.
      this._isRefused = true;
    }
  }

  private _opened(comm: Kernel.IComm): Kernel.IComm {
    comm.onMsg = message => {
      if (comm === this._comm) {
        this._process = message.header.session;
        this._options.receive(message.content.data);
      }
    };
    comm.onClose = () => {
      if (comm === this._comm) {
        this._comm = null;
        this._isRefused = true;
      }
    };
    const [opening, ...more] = this._options.greeting();
    this._isLost = false;
    this._process = '';
    comm.open(opening as unknown as JSONObject);
    more.forEach(message => comm.send(message as unknown as JSONObject));
    return comm;
  }

  private _close(): void {
    const comm = this._comm;
    this._comm = null;
    try {
      comm?.close();
    } catch {
      // Its kernel is gone, and the comm with it.
    }
  }

  private _onKernelChanged(
    _: ISessionContext,
    { oldValue, newValue }: Session.ISessionConnection.IKernelChangedArgs
  ): void {
    this._isRestarting = false;
    // After a restart the kernel is the same object, and may have its comm already.
    if (oldValue !== newValue) {
      this._close();
      this._isRefused = false;
      if (oldValue) {
        this._options.gone();
      }
    }
    this._open();
  }

  private _onStatusChanged(_: ISessionContext, status: Kernel.Status): void {
    switch (status) {
      case 'dead':
      case 'terminating':
      case 'restarting':
      case 'autorestarting':
        this._isRestarting =
          status === 'restarting' || status === 'autorestarting';
        this._isRefused = false;
        this._options.gone();
        break;
      case 'idle':
      case 'busy':
        this._open();
        break;
      default:
    }
  }

  private _onConnectionChanged(
    _: ISessionContext,
    status: Kernel.ConnectionStatus
  ): void {
    if (status !== 'connected') {
      this._isLost = true;
      return;
    }
    if (this._isLost) {
      this._close();
    }
    this._isRestarting = false;
    this._open();
  }

  /** Somebody else can restart the kernel, and then this is all that one hears of it. */
  private _onIOPubMessage(
    _: ISessionContext,
    { header, parent_header }: KernelMessage.IMessage
  ): void {
    // Without a parent it is the server that speaks, but for a welcome.
    const isKernel =
      'msg_id' in parent_header ||
      (header.msg_type as string) === 'iopub_welcome';
    const isOther = this._process !== '' && this._process !== header.session;
    if (isKernel && isOther) {
      this._close();
      this._options.gone();
      this._open();
    }
  }

  private readonly _options: KernelComm.IOptions;
  private _comm: Kernel.IComm | null = null;
  private _asked: Kernel.IKernelConnection | null = null;
  private _known: Kernel.IKernelConnection | null = null;
  /** The session id of the kernel process that has the comm, as is in all that it says. */
  private _process = '';
  private _isLost = false;
  private _isRestarting = false;
  private _isRefused = false;
  private _isDisposed = false;
}

export namespace KernelComm {
  export interface IOptions {
    readonly sessionContext: ISessionContext;
    /** Return what a kernel hears first: with what the comm is opened, and what follows. */
    readonly greeting: () => readonly [IOpening, ...PageMessage[]];
    /** Take what the kernel says: anything at all. */
    readonly receive: (data: unknown) => void;
    /** The kernel process is gone, and what it had begun with it. Called once or more. */
    readonly gone: () => void;
  }
}
