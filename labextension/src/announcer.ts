import type { IDisposable } from '@lumino/disposable';

/** Speaks to screen readers through one polite live region, unseen on the screen. */
export class Announcer implements IDisposable {
  constructor() {
    this._node = document.createElement('div');
    this._node.className = 'crush-announcer';
    this._node.setAttribute('role', 'status');
    this._node.setAttribute('aria-live', 'polite');
    document.body.append(this._node);
  }

  get isDisposed(): boolean {
    return !this._node.isConnected;
  }

  dispose(): void {
    this._node.remove();
  }

  /** Say `text` when the reader has finished what it is saying. */
  say(text: string): void {
    // A fresh element: the same words said twice are two announcements.
    const line = document.createElement('span');
    line.textContent = text;
    this._node.replaceChildren(line);
  }

  private readonly _node: HTMLElement;
}
