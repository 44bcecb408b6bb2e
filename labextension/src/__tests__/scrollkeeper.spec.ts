import type { ICellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import { ScrollKeeper } from '../scrollkeeper';

let observers: FakeObserver[];
let now: number;

/** Observes nothing by itself; the test says what has changed. */
class FakeObserver {
  constructor(readonly callback: (entries: object[]) => void) {
    observers.push(this);
  }

  readonly observed = new Set<HTMLElement>();

  observe(node: HTMLElement): void {
    this.observed.add(node);
  }

  unobserve(node: HTMLElement): void {
    this.observed.delete(node);
  }

  disconnect(): void {
    this.observed.clear();
  }
}

/** Cells of these heights one below the other, of which 100 pixels are on the screen. */
class FakeNotebook {
  constructor(heights: number[], scrollTop: number) {
    this.outerNode.scrollTop = scrollTop;
    this.outerNode.getBoundingClientRect = () => ({ top: 0 }) as DOMRect;
    this.widgets = heights.map(height => {
      const node = document.createElement('div');
      const widget = { model: {} as ICellModel, node, height };
      Object.defineProperty(node, 'offsetHeight', { get: () => widget.height });
      node.getBoundingClientRect = () =>
        ({ bottom: this._bottomOf(widget) }) as DOMRect;
      return widget;
    });
  }

  readonly outerNode = document.createElement('div');
  readonly notebookConfig = { windowingMode: 'contentVisibility' };
  readonly widgets: { model: ICellModel; node: HTMLElement; height: number }[];

  /** Give the cells other heights, and tell those who observe them. */
  grow(heights: Record<number, number>): void {
    const grown = Object.entries(heights).map(([index, height]) => {
      const widget = this.widgets[Number(index)];
      widget.height = height;
      return widget.node;
    });
    for (const { observed, callback } of observers) {
      const entries = grown.filter(node => observed.has(node));
      if (entries.length > 0) {
        callback(entries.map(target => ({ target })));
      }
    }
  }

  private _bottomOf(widget: object): number {
    const index = this.widgets.indexOf(widget as never);
    const heights = this.widgets
      .slice(0, index + 1)
      .map(({ height }) => height);
    return heights.reduce((a, b) => a + b) - this.outerNode.scrollTop;
  }
}

function following(
  heights: number[],
  scrollTop: number,
  indices: number[]
): { notebook: FakeNotebook; keeper: ScrollKeeper } {
  const notebook = new FakeNotebook(heights, scrollTop);
  const keeper = new ScrollKeeper(notebook as unknown as Notebook);
  keeper.follow(new Set(indices.map(index => notebook.widgets[index].model)));
  return { notebook, keeper };
}

beforeEach(() => {
  observers = [];
  now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  globalThis.ResizeObserver = FakeObserver as never;
});

test.each([
  ['a cell above that grows', { 0: 80 }, 130],
  ['a cell above that shrinks', { 0: 20 }, 70],
  ['two cells above', { 0: 80, 1: 70 }, 150],
  ['a cell that is on the screen in part', { 2: 90 }, 100],
  ['a cell above and one on the screen', { 0: 80, 2: 90 }, 130],
  ['a cell below', { 3: 500 }, 100]
])('%s leaves in its place what is on the screen', (_, heights, scrollTop) => {
  const { notebook } = following([50, 50, 50, 50], 100, [0, 1, 2, 3]);

  notebook.grow(heights);

  expect(notebook.outerNode.scrollTop).toBe(scrollTop);
});

test('what grows in steps is followed in steps', () => {
  const { notebook } = following([50, 50, 50], 100, [0]);

  notebook.grow({ 0: 60 });
  notebook.grow({ 0: 90 });

  expect(notebook.outerNode.scrollTop).toBe(140);
});

test('a cell that is not painted moves nothing', () => {
  const { notebook } = following([50, 50, 50], 100, [1]);

  notebook.grow({ 0: 90 });

  expect(notebook.outerNode.scrollTop).toBe(100);
});

test('a cell is followed for a moment only, from when it was painted last', () => {
  const { notebook, keeper } = following([50, 50, 50], 100, [0]);
  now = 900;
  keeper.follow(new Set([notebook.widgets[0].model]));
  now = 1800;
  notebook.grow({ 0: 60 });
  expect(notebook.outerNode.scrollTop).toBe(110);

  now = 2000;
  notebook.grow({ 0: 90 });

  expect(notebook.outerNode.scrollTop).toBe(110);
  expect(observers[0].observed.size).toBe(0);
});

test('a notebook that is hidden and shown again stays where it is', () => {
  const { notebook, keeper } = following([50, 50, 50], 100, [0]);

  notebook.grow({ 0: 0 });
  keeper.follow(new Set([notebook.widgets[0].model]));
  notebook.grow({ 0: 50 });

  expect(notebook.outerNode.scrollTop).toBe(100);
});

test('nothing is followed where only cells on the screen are drawn', () => {
  const { notebook, keeper } = following([50, 50, 50], 100, []);
  notebook.notebookConfig.windowingMode = 'full';

  keeper.follow(new Set([notebook.widgets[0].model]));

  expect(observers[0].observed.size).toBe(0);
});

test('nothing is followed after dispose', () => {
  const { notebook, keeper } = following([50, 50, 50], 100, [0]);

  keeper.dispose();
  keeper.follow(new Set([notebook.widgets[0].model]));
  notebook.grow({ 0: 90 });

  expect(keeper.isDisposed).toBe(true);
  expect(notebook.outerNode.scrollTop).toBe(100);
});
