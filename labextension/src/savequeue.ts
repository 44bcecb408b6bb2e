import type { NotebookPanel } from '@jupyterlab/notebook';

/**
 * Have each save of `context` begin when the one before it is done; safe to repeat.
 *
 * JupyterLab lets them overlap. The later one then takes what the earlier one has just
 * written for a change by somebody else, and asks the user about it.
 */
export function queueSaves(context: NotebookPanel['context']): void {
  if (Private.queued.has(context)) {
    return;
  }
  Private.queued.add(context);
  const save = context.save.bind(context);
  let last: Promise<void> = Promise.resolve();
  context.save = () => {
    const saved = last.then(save);
    last = saved.catch(() => undefined);
    return saved;
  };
}

namespace Private {
  export const queued = new WeakSet<NotebookPanel['context']>();
}
