import type { IRenderMime } from '@jupyterlab/rendermime';
import {
  RenderMimeRegistry,
  markdownRendererFactory,
  MimeModel
} from '@jupyterlab/rendermime';
import { showMarkdownInOrder } from '../orderedmarkdown';
import { settled } from './fakepanel';

/** Renders what it is given as soon as the test lets it. */
class SlowParser {
  async render(source: string): Promise<string> {
    await new Promise<void>(resolve => this._waiting.set(source, resolve));
    return `<p>${source}</p>`;
  }

  get parsing(): string[] {
    return [...this._waiting.keys()];
  }

  async finish(source: string): Promise<void> {
    this._waiting.get(source)?.();
    this._waiting.delete(source);
    await settled();
  }

  private readonly _waiting = new Map<string, () => void>();
}

function markdown(text: string): MimeModel {
  return new MimeModel({ data: { 'text/markdown': text } });
}

let renderer: IRenderMime.IRenderer;

afterEach(() => renderer.dispose());

function opened() {
  const parser = new SlowParser();
  const rendermime = new RenderMimeRegistry({
    initialFactories: [markdownRendererFactory],
    markdownParser: parser
  });
  showMarkdownInOrder(rendermime);
  renderer = rendermime.createRenderer('text/markdown');
  return parser;
}

test('an update that is rendered slowly does not replace a later one', async () => {
  const parser = opened();

  const slow = renderer.renderModel(markdown('first'));
  await settled();
  const fast = renderer.renderModel(markdown('second'));
  await settled();
  await parser.finish('second');
  await parser.finish('first');
  await parser.finish('second');
  await Promise.all([slow, fast]);

  expect(renderer.node.textContent).toBe('second');
});

test('what has been overtaken is not rendered', async () => {
  const parser = opened();

  void renderer.renderModel(markdown('first'));
  await settled();
  void renderer.renderModel(markdown('second'));
  void renderer.renderModel(markdown('third'));
  await parser.finish('first');

  expect(parser.parsing).toEqual(['third']);
});

test('a failure is told, and the next update is shown', async () => {
  const parser = opened();
  const render = jest
    .spyOn(parser, 'render')
    .mockRejectedValueOnce(new Error('no such language'));

  await expect(renderer.renderModel(markdown('first'))).rejects.toThrow(
    'no such language'
  );
  render.mockRestore();
  void renderer.renderModel(markdown('second'));
  await settled();
  await parser.finish('second');

  expect(renderer.node.textContent).toBe('second');
});

test('a renderer that is gone renders nothing more', async () => {
  const parser = opened();
  void renderer.renderModel(markdown('first'));
  await settled();
  const late = renderer.renderModel(markdown('second'));
  renderer.dispose();
  await parser.finish('first');

  await late;
  expect(parser.parsing).toEqual([]);
});

test('the factory of another extension keeps its rank, and is asked once', () => {
  const createRenderer = jest.fn(markdownRendererFactory.createRenderer);
  const rendermime = new RenderMimeRegistry();
  rendermime.addFactory({ ...markdownRendererFactory, createRenderer }, 7);

  showMarkdownInOrder(rendermime);
  const ordered = rendermime.getFactory('text/markdown');
  showMarkdownInOrder(rendermime);
  renderer = rendermime.createRenderer('text/markdown');

  expect(rendermime.getFactory('text/markdown')).toBe(ordered);
  expect(rendermime.getRank('text/markdown')).toBe(7);
  expect(createRenderer).toHaveBeenCalledTimes(1);
});

test('no Markdown is added where there is none', () => {
  const rendermime = new RenderMimeRegistry();

  showMarkdownInOrder(rendermime);

  expect(rendermime.mimeTypes).toEqual([]);
});
