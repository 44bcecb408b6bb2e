import { PermissionCards } from '../cards';

const CARD = `
  <div class="crush-card">
    <div class="widget-html">bash wants to run\nls</div>
    <button class="crush-allow-once">Allow once</button>
    <button class="crush-allow-session">Allow for this session</button>
    <button class="crush-deny">Deny</button>
    <div class="crush-reason"><input type="text" /></div>
  </div>`;

const FORM = `
  <div class="crush-card crush-question">
    <div class="widget-html">Which one?</div>
    <div class="crush-choices" title="Which one?"></div>
    <div class="crush-words" title="Which one?: other"><input type="text" /></div>
    <button class="crush-answer">Send answers</button>
    <button class="crush-dismiss">Dismiss</button>
  </div>`;

/** Wait until what has changed was looked at. */
async function settled(): Promise<void> {
  await new Promise(resolve => setTimeout(resolve, 60));
}

let pressed: string[];
let reachedJupyterLab: string[];
let node: HTMLElement;

function onJupyterLabKey(event: KeyboardEvent): void {
  reachedJupyterLab.push(event.key);
}

function onClick(event: MouseEvent): void {
  pressed.push((event.target as HTMLElement).className);
}

beforeEach(() => {
  pressed = [];
  reachedJupyterLab = [];
  node = document.createElement('div');
  document.body.replaceChildren(node);
  node.addEventListener('click', onClick);
  document.addEventListener('keydown', onJupyterLabKey, true);
  window.addEventListener('keydown', PermissionCards.onKeydown, true);
});

afterEach(() => {
  document.removeEventListener('keydown', onJupyterLabKey, true);
  window.removeEventListener('keydown', PermissionCards.onKeydown, true);
});

function element(selector: string): HTMLElement {
  return node.querySelector<HTMLElement>(selector)!;
}

/** Press `key` on what `selector` finds; true if the browser still does its part. */
function press(
  selector: string,
  key: string,
  init: KeyboardEventInit = {}
): boolean {
  return element(selector).dispatchEvent(
    new KeyboardEvent('keydown', {
      key,
      bubbles: true,
      cancelable: true,
      ...init
    })
  );
}

function watch(): {
  cards: PermissionCards;
  said: string[];
  refocus: jest.Mock;
} {
  const said: string[] = [];
  const refocus = jest.fn();
  const cards = new PermissionCards({
    node,
    label: 'Permission question',
    formLabel: 'Question',
    reasonLabel: 'Reason',
    announce: text => said.push(text),
    refocus
  });
  return { cards, said, refocus };
}

const EDITED = `
  <div class="crush-card">
    <div class="widget-html">bash wants to run</div>
    <button class="crush-help" title="What the buttons mean">?</button>
    <button class="crush-allow-once">Allow once</button>
    <button class="crush-always">Always …</button>
    <button class="crush-deny">Deny</button>
    <div class="crush-rule-editor">
      <div class="crush-rules"><textarea></textarea></div>
      <button class="crush-rules-cancel">Cancel</button>
    </div>
  </div>`;

const PLAN = `
  <div class="crush-card crush-plan-card">
    <div class="widget-html">Approve this plan?</div>
    <button class="crush-approve">Approve</button>
    <button class="crush-keep-planning">Keep planning</button>
  </div>`;

describe('the rules of Always', () => {
  test('Escape among them cancels them and does not deny', () => {
    node.innerHTML = EDITED;

    expect(press('textarea', 'Escape')).toBe(false);

    expect(pressed).toEqual(['crush-rules-cancel']);
  });

  test('Enter among them is typing', () => {
    node.innerHTML = EDITED;

    expect(press('textarea', 'Enter')).toBe(true);

    expect(pressed).toEqual([]);
  });

  test('the focus moves into them from the button that was pressed', async () => {
    node.innerHTML = EDITED;
    const editor = element('.crush-rule-editor');
    editor.remove();
    const { cards } = watch();
    element('.crush-always').focus();
    element('.crush-card').append(editor);
    await settled();

    expect(document.activeElement).toBe(element('textarea'));
    cards.dispose();
  });

  test('the focus is not taken from where somebody types', async () => {
    node.innerHTML = EDITED + '<input id="elsewhere" />';
    const editor = element('.crush-rule-editor');
    editor.remove();
    const { cards } = watch();
    element('#elsewhere').focus();
    element('.crush-card').append(editor);
    await settled();

    expect(document.activeElement).toBe(element('#elsewhere'));
    cards.dispose();
  });

  test('the focus goes back to Always when they are gone', async () => {
    node.innerHTML = EDITED;
    const { cards, refocus } = watch();
    element('textarea').focus();
    element('.crush-rule-editor').remove();
    await settled();

    expect(document.activeElement).toBe(element('.crush-always'));
    expect(refocus).not.toHaveBeenCalled();
    cards.dispose();
  });
});

describe('a plan', () => {
  test.each([
    ['Enter', 'crush-approve'],
    ['Escape', 'crush-keep-planning']
  ])('%s on the card presses %s', (key, expected) => {
    node.innerHTML = PLAN;

    expect(press('.crush-card', key)).toBe(false);

    expect(pressed).toEqual([expected]);
  });
});

test('a settled card is not waiting, and the help button has a name', async () => {
  node.innerHTML = EDITED;
  const { cards } = watch();
  await settled();
  expect(element('.crush-help').getAttribute('aria-label')).toBe(
    'What the buttons mean'
  );
  element('.crush-card').scrollIntoView = jest.fn();
  expect(cards.focusFirst()).toBe(true);
  element('.crush-card').insertAdjacentHTML(
    'beforeend',
    '<div class="crush-settled">allowed once</div>'
  );

  expect(cards.focusFirst()).toBe(false);
  cards.dispose();
});

describe('keys', () => {
  test('Enter on the card itself allows once', () => {
    node.innerHTML = CARD;

    expect(press('.crush-card', 'Enter')).toBe(false);

    expect(pressed).toEqual(['crush-allow-once']);
    expect(reachedJupyterLab).toEqual([]);
  });

  test.each(['.crush-allow-session', '.crush-deny'])(
    'Enter on the button %s is left to the browser, which presses it',
    selector => {
      node.innerHTML = CARD;

      expect(press(selector, 'Enter')).toBe(true);

      expect(pressed).toEqual([]);
      expect(reachedJupyterLab).toEqual([]);
    }
  );

  test.each(['.crush-card', '.crush-allow-once', 'input'])(
    'Escape on %s denies',
    selector => {
      node.innerHTML = CARD;

      expect(press(selector, 'Escape')).toBe(false);

      expect(pressed).toEqual(['crush-deny']);
      expect(reachedJupyterLab).toEqual([]);
    }
  );

  test('Enter on Stop of a running call is not taken by a shortcut', () => {
    node.innerHTML =
      '<div class="crush-call"><button class="crush-stop">Stop</button></div>';

    expect(press('.crush-stop', 'Enter')).toBe(true);

    expect(reachedJupyterLab).toEqual([]);
  });

  test.each([
    ['typing Enter in the reason', 'input', 'Enter', {}],
    ['a letter', '.crush-card', 'a', {}],
    ['Shift+Enter on the card', '.crush-card', 'Enter', { shiftKey: true }],
    ['Ctrl+Enter on the card', '.crush-card', 'Enter', { ctrlKey: true }],
    ['Escape of an input method', 'input', 'Escape', { isComposing: true }]
  ])('%s is left alone', (_, selector, key, init) => {
    node.innerHTML = CARD;

    expect(press(selector, key, init)).toBe(true);

    expect(pressed).toEqual([]);
    expect(reachedJupyterLab).toEqual([key]);
  });

  test.each([
    ['.crush-card', 'Enter'],
    ['.crush-card', 'Escape'],
    ['.crush-allow-once', 'Enter']
  ])('holding a key down on %s answers nothing', (selector, key) => {
    node.innerHTML = CARD;

    expect(press(selector, key, { repeat: true })).toBe(false);

    expect(pressed).toEqual([]);
  });

  test('keys outside a card go to JupyterLab', () => {
    node.innerHTML = '<button class="other">x</button>';

    press('.other', 'Enter');
    press('.other', 'Escape');

    expect(reachedJupyterLab).toEqual(['Enter', 'Escape']);
  });

  test('a card painted by a model in its text answers to no key', () => {
    node.innerHTML = `<div class="jp-RenderedHTMLCommon">${CARD}</div>`;

    press('.crush-card', 'Enter');
    press('.crush-card', 'Escape');

    expect(pressed).toEqual([]);
  });

  test('Enter on a card without an allow button does nothing', () => {
    node.innerHTML = '<div class="crush-card">settled</div>';

    press('.crush-card', 'Enter');

    expect(pressed).toEqual([]);
  });
});

describe('keys in a form of questions', () => {
  test('Escape dismisses it, and Enter on it answers nothing', () => {
    node.innerHTML = FORM;

    press('.crush-card', 'Enter');
    expect(pressed).toEqual([]);
    press('input', 'Escape');
    expect(pressed).toEqual(['crush-dismiss']);
  });
});

describe('a card that appears', () => {
  test('is introduced once, by its first line, when its buttons are there', async () => {
    const { said } = watch();
    node.innerHTML = '<div class="crush-card"></div>';
    await settled();
    expect(said).toEqual([]);

    node.innerHTML = CARD;
    await settled();
    element('.crush-deny').textContent = 'No';
    node.append(document.createElement('p'));
    await settled();

    expect(said).toEqual(['Permission question: bash wants to run']);
    const card = element('.crush-card');
    expect(card.getAttribute('role')).toBe('group');
    expect(card.getAttribute('aria-label')).toBe(
      'Permission question: bash wants to run'
    );
    expect(element('.crush-reason input').getAttribute('aria-label')).toBe(
      'Reason'
    );
    expect(card.tabIndex).toBe(0);
  });

  test('says of every field of a form what it is for', () => {
    node.innerHTML = FORM;

    expect(watch().said).toEqual(['Question: Which one?']);
    const named = [...node.querySelectorAll('input, .crush-choices')].map(
      field => [field.getAttribute('role'), field.getAttribute('aria-label')]
    );
    expect(named).toEqual([
      ['radiogroup', 'Which one?'],
      [null, 'Which one?: other']
    ]);
  });

  test('is introduced when it gets its class after its place', async () => {
    const { said } = watch();
    node.innerHTML = CARD.replace('class="crush-card"', 'class="widget-box"');
    await settled();
    expect(said).toEqual([]);

    element('.widget-box').classList.add('crush-card');
    await settled();

    expect(said).toHaveLength(1);
  });

  test('does not take the focus', async () => {
    const input = document.createElement('input');
    document.body.append(input);
    input.focus();
    watch();

    node.innerHTML = CARD;
    await settled();

    expect(document.activeElement).toBe(input);
  });

  test('is found when it was there before the watcher', () => {
    node.innerHTML = CARD;

    expect(watch().said).toHaveLength(1);
  });

  test('is not introduced when a model painted it', async () => {
    const { said } = watch();

    node.innerHTML = `<div class="jp-RenderedHTMLCommon">${CARD}</div>`;
    await settled();

    expect(said).toEqual([]);
  });

  test('is not introduced after dispose', async () => {
    const { cards, said } = watch();
    cards.dispose();
    cards.dispose();

    node.innerHTML = CARD;
    await settled();

    expect(cards.isDisposed).toBe(true);
    expect(said).toEqual([]);
  });
});

describe('focus', () => {
  beforeEach(() => {
    HTMLElement.prototype.scrollIntoView = () => undefined;
  });

  test('goes to the first waiting card on request', () => {
    node.innerHTML = CARD + CARD;

    expect(watch().cards.focusFirst()).toBe(true);

    expect(document.activeElement).toBe(element('.crush-card'));
  });

  test('has nowhere to go without a waiting card', () => {
    expect(watch().cards.focusFirst()).toBe(false);
  });

  test('returns to the notebook when the answered card vanishes with it', async () => {
    node.innerHTML = CARD;
    const { refocus } = watch();
    element('.crush-allow-once').focus();

    node.innerHTML = '';
    await settled();
    node.append(document.createElement('p'));
    await settled();

    expect(refocus).toHaveBeenCalledTimes(1);
  });

  test('stays where the user put it when a card elsewhere vanishes', async () => {
    const input = document.createElement('input');
    document.body.append(input);
    node.innerHTML = CARD;
    const { refocus } = watch();
    element('.crush-allow-once').focus();
    input.focus();

    node.innerHTML = '';
    await settled();

    expect(refocus).not.toHaveBeenCalled();
  });
});
