import { Announcer } from '../announcer';

test('speaks through one polite region, and is gone after dispose', () => {
  const announcer = new Announcer();
  const region = document.querySelector('[role="status"]');

  announcer.say('one');
  announcer.say('two');

  expect(region?.getAttribute('aria-live')).toBe('polite');
  expect(region?.textContent).toBe('two');

  announcer.dispose();
  expect(announcer.isDisposed).toBe(true);
  expect(document.querySelector('[role="status"]')).toBeNull();
});

test('the same words said twice are two announcements', () => {
  const announcer = new Announcer();
  announcer.say('Turn done');
  const first = document.querySelector('[role="status"]')?.firstChild;

  announcer.say('Turn done');

  expect(document.querySelector('[role="status"]')?.firstChild).not.toBe(first);
  announcer.dispose();
});
