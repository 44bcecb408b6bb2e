import type { IDisposable } from '@lumino/disposable';

/** How long to wait between two looks: a notebook that opens changes hundreds of times. */
const LOOK_EVERY_MS = 50;

/**
 * Keyboard and screen reader manners of the cards below one node that wait for a person.
 *
 * A card is a widget of the kernel, `.crush-card`: a permission card with the buttons
 * `.crush-allow-once` and `.crush-deny`, a form of questions with `.crush-dismiss`, or a plan
 * with `.crush-approve` and `.crush-keep-planning`. It is over when it has `.crush-settled`. Text
 * from a model may carry any class name, so what stands inside rendered text is never taken for
 * a card.
 */
export class PermissionCards implements IDisposable {
  constructor(options: PermissionCards.IOptions) {
    this._options = options;
    this._observer = new MutationObserver(() => this._lookSoon());
    // A widget gets its classes after it has been put into the document.
    this._observer.observe(options.node, {
      childList: true,
      subtree: true,
      attributeFilter: ['class']
    });
    options.node.addEventListener('focusin', this._onFocusIn);
    this._look();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._observer.disconnect();
    clearTimeout(this._timer);
    this._options.node.removeEventListener('focusin', this._onFocusIn);
  }

  /** Put the focus on the first card that waits for an answer; tell whether there is one. */
  focusFirst(): boolean {
    const [card] = Private.waitingCards(this._options.node);
    card?.scrollIntoView({ block: 'nearest' });
    card?.focus();
    return card !== undefined;
  }

  private _lookSoon(): void {
    this._timer ??= setTimeout(() => this._look(), LOOK_EVERY_MS);
  }

  private _look(): void {
    this._timer = undefined;
    for (const card of Private.waitingCards(this._options.node)) {
      if (!this._known.has(card)) {
        this._known.add(card);
        this._introduce(card);
      }
      Private.nameFields(card);
      this._enterEditor(card);
    }
    this._rescueFocus();
  }

  private _introduce(card: HTMLElement): void {
    const { reasonLabel, announce } = this._options;
    const isForm = Private.isForm(card);
    const label = isForm ? this._options.formLabel : this._options.label;
    const question = Private.firstLine(card);
    const name = question ? `${label}: ${question}` : label;
    card.setAttribute('role', 'group');
    card.setAttribute('aria-label', name);
    card.setAttribute('aria-keyshortcuts', isForm ? 'Escape' : 'Enter Escape');
    card.tabIndex = 0;
    card
      .querySelector('.crush-reason input')
      ?.setAttribute('aria-label', reasonLabel);
    announce(name);
  }

  /** Move the focus on into the rules that were asked for, unless it has left the card. */
  private _enterEditor(card: HTMLElement): void {
    const field = Private.rulesOf(card);
    if (field && !this._entered.has(field)) {
      this._entered.add(field);
      const { activeElement } = document;
      // A button that was pressed and is disabled since has lost the focus to the body.
      const isHere =
        activeElement === document.body
          ? this._focusedCard === card
          : card.contains(activeElement);
      if (isHere) {
        field.focus();
      }
    }
  }

  /**
   * An answered card vanishes with the focus in it: give the focus back to the notebook. What was
   * cancelled inside of a card that still waits gives it back to the card.
   */
  private _rescueFocus(): void {
    if (this._focused && !this._focused.isConnected) {
      const card = this._focusedCard;
      this._focused = null;
      if (document.activeElement === document.body) {
        if (card?.isConnected && Private.isWaiting(card)) {
          (Private.alwaysOf(card) ?? card).focus();
        } else {
          this._options.refocus();
        }
      }
    }
  }

  private readonly _onFocusIn = (event: FocusEvent): void => {
    this._focusedCard = Private.cardOf(event.target);
    this._focused = this._focusedCard ? (event.target as Node) : null;
  };

  private readonly _options: PermissionCards.IOptions;
  private readonly _observer: MutationObserver;
  private readonly _known = new WeakSet<HTMLElement>();
  private readonly _entered = new WeakSet<HTMLElement>();
  private _focused: Node | null = null;
  private _focusedCard: HTMLElement | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}

export namespace PermissionCards {
  export interface IOptions {
    /** The node whose descendants are watched. */
    readonly node: HTMLElement;
    /** What a card is called: `Permission question`, translated. */
    readonly label: string;
    /** What a form of questions is called: `Question`, translated. */
    readonly formLabel: string;
    /** What the field for a reason is called, translated: a placeholder is no name. */
    readonly reasonLabel: string;
    /** Tell people who do not see the screen. */
    readonly announce: (text: string) => void;
    /** Put the focus where it belongs when the card that had it is gone. */
    readonly refocus: () => void;
  }

  /**
   * Answer a card by key: `Enter` presses the focused button, or Allow once or Approve when the
   * card itself has the focus; `Escape` presses Deny, Dismiss or Keep planning, and among the
   * rules of Always it presses Cancel.
   *
   * Must see the event before JupyterLab's shortcuts do. Typing is left alone: `Enter` in a
   * text field, keys with modifiers, and keys that belong to an input method.
   */
  export function onKeydown(event: KeyboardEvent): void {
    if (Private.isPlain(event) && event.target instanceof HTMLElement) {
      if (event.key === 'Enter') {
        Private.onEnter(event, event.target);
      } else if (event.key === 'Escape') {
        Private.onEscape(event, event.target);
      }
    }
  }
}

namespace Private {
  const RENDERED_TEXT = '.jp-RenderedHTMLCommon';
  const CARD = '.crush-card';
  const YES = '.crush-allow-once, .crush-approve';
  const DISMISS = '.crush-dismiss';
  const NO = `.crush-deny, ${DISMISS}, .crush-keep-planning`;
  const SETTLED = '.crush-settled';
  const EDITOR = '.crush-rule-editor';
  const CALL = '.crush-call';

  export function waitingCards(node: HTMLElement): HTMLElement[] {
    return [...node.querySelectorAll<HTMLElement>(CARD)].filter(
      card => isOurs(card) && isWaiting(card)
    );
  }

  export function isWaiting(card: HTMLElement): boolean {
    return (
      card.querySelector(NO) !== null && card.querySelector(SETTLED) === null
    );
  }

  export function rulesOf(card: HTMLElement): HTMLElement | null {
    return card.querySelector<HTMLElement>('.crush-rules textarea');
  }

  export function alwaysOf(card: HTMLElement): HTMLElement | null {
    return card.querySelector<HTMLElement>('.crush-always:enabled');
  }

  export function isForm(card: HTMLElement): boolean {
    return card.querySelector(DISMISS) !== null;
  }

  /** Give the fields of a form the names that the kernel wrote into their titles. */
  export function nameFields(card: HTMLElement): void {
    const help = card.querySelector('.crush-help');
    if (help && !help.hasAttribute('aria-label')) {
      help.setAttribute('aria-label', help.getAttribute('title') ?? '?');
    }
    for (const field of card.querySelectorAll('.crush-words, .crush-choices')) {
      // Not every widget shows its title: then its question stands before it in its box.
      const box = field.parentElement;
      const name = field.getAttribute('title') || (box ? firstLine(box) : '');
      const isText = field.classList.contains('crush-words');
      const named = isText ? field.querySelector('input, textarea') : field;
      if (name && named && named.getAttribute('aria-label') !== name) {
        named.setAttribute('aria-label', name);
        if (!isText) {
          named.setAttribute('role', 'radiogroup');
        }
      }
    }
  }

  export function cardOf(target: EventTarget | null): HTMLElement | null {
    return target instanceof HTMLElement && isOurs(target)
      ? target.closest<HTMLElement>(CARD)
      : null;
  }

  export function firstLine(card: HTMLElement): string {
    const text = card.querySelector('.widget-html, .widget-label')?.textContent;
    return text?.trim().split('\n')[0] ?? '';
  }

  export function isPlain(event: KeyboardEvent): boolean {
    return !(
      event.isComposing ||
      event.altKey ||
      event.ctrlKey ||
      event.metaKey ||
      event.shiftKey
    );
  }

  export function onEnter(event: KeyboardEvent, target: HTMLElement): void {
    const card = cardOf(target);
    if (target instanceof HTMLButtonElement && (card || callOf(target))) {
      // The browser presses the button; only JupyterLab must not take the key.
      event.stopImmediatePropagation();
      if (event.repeat) {
        event.preventDefault();
      }
    } else if (card && card === target) {
      take(event);
      press(event, card.querySelector<HTMLButtonElement>(YES));
    }
  }

  export function onEscape(event: KeyboardEvent, target: HTMLElement): void {
    const card = cardOf(target);
    if (card) {
      take(event);
      const cancel = target
        .closest(EDITOR)
        ?.querySelector<HTMLButtonElement>('.crush-rules-cancel');
      press(event, cancel ?? card.querySelector<HTMLButtonElement>(NO));
    }
  }

  function callOf(target: HTMLElement): HTMLElement | null {
    return isOurs(target) ? target.closest<HTMLElement>(CALL) : null;
  }

  function isOurs(element: HTMLElement): boolean {
    return element.closest(RENDERED_TEXT) === null;
  }

  function take(event: KeyboardEvent): void {
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** Press `button` unless the key is merely held down: holding is not answering. */
  function press(event: KeyboardEvent, button: HTMLButtonElement | null): void {
    if (!event.repeat) {
      button?.click();
    }
  }
}
