import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';

/** Return the kernel that `sessionContext` has now, if any. */
export function kernelOf(
  sessionContext: ISessionContext
): Kernel.IKernelConnection | null {
  return sessionContext.session?.kernel ?? null;
}

/**
 * Whether `kernel` has the name of Crush's kernelspec: known before it has started, and good
 * enough to send what another kind of kernel merely refuses.
 */
export function isNamedCrush({ name }: Kernel.IKernelConnection): boolean {
  return name === 'crush';
}

/** Whether `kernel` is Crush, by what it says of itself: a kernelspec can have any name. */
export async function isCrush(
  kernel: Kernel.IKernelConnection
): Promise<boolean> {
  try {
    return (await kernel.info).implementation.startsWith('crush');
  } catch {
    // The kernel died before it answered; its successor is asked in turn.
    return false;
  }
}
