/* What JupyterLab's modules want of a browser as soon as they are loaded; jsdom has none. */
globalThis.DragEvent = class extends MouseEvent {};
globalThis.IntersectionObserver = class {};
globalThis.ResizeObserver = class {
  observe() {}
  disconnect() {}
};
globalThis.matchMedia = () => ({ matches: false, addListener: () => {} });

/* What JupyterLab's parts say of each other, in the browser as well. */
const NOISE = [
  'Add Yjs type to a document before reading data',
  'Clipboard API not available',
  'Not same Y.Doc'
];
const { warn } = console;
console.warn = (...args) => {
  if (!NOISE.some(words => String(args).includes(words))) {
    warn(...args);
  }
};
