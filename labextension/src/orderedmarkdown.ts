import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';

const MARKDOWN = 'text/markdown';

/**
 * Have outputs show the Markdown that they were given last; safe to repeat.
 *
 * JupyterLab renders each update by itself. One that has to load a language for its code is
 * done after a later one without code, and would replace it for good.
 */
export function showMarkdownInOrder(rendermime: IRenderMimeRegistry): void {
  const factory = rendermime.getFactory(MARKDOWN);
  if (factory && !Private.ordered.has(factory)) {
    const ordered: IRenderMime.IRendererFactory = {
      safe: factory.safe,
      mimeTypes: [MARKDOWN],
      createRenderer: options => inOrder(factory.createRenderer(options))
    };
    Private.ordered.add(ordered);
    rendermime.addFactory(ordered, rendermime.getRank(MARKDOWN));
  }
}

/**
 * Have `renderer` render one model after another, and leave out those that another one has
 * followed by then. Its promises reject as before.
 */
function inOrder<T extends IRenderMime.IRenderer>(renderer: T): T {
  const render = renderer.renderModel.bind(renderer);
  let newest: IRenderMime.IMimeModel | null = null;
  let last = Promise.resolve();
  renderer.renderModel = model => {
    newest = model;
    const rendered = last.then(() =>
      newest === model && !renderer.isDisposed ? render(model) : undefined
    );
    last = rendered.catch(() => undefined);
    return rendered;
  };
  return renderer;
}

namespace Private {
  export const ordered = new WeakSet<IRenderMime.IRendererFactory>();
}
