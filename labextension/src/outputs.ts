import type * as nbformat from '@jupyterlab/nbformat';
import type {
  PartialJSONObject,
  ReadonlyPartialJSONValue
} from '@lumino/coreutils';
import { isObject, plainCopy } from './untrusted';

/**
 * Return the outputs among `values` as a notebook file has them; what is none is left out.
 *
 * Lines that were stored as a list are joined, and streams that follow each other are one,
 * as JupyterLab does itself, so that outputs can be compared with those on the page.
 */
export function parseOutputs(
  values: readonly ReadonlyPartialJSONValue[]
): nbformat.IOutput[] {
  const outputs: nbformat.IOutput[] = [];
  for (const value of values) {
    const output = Private.parseOutput(value);
    const last = outputs.at(-1);
    if (output && last && Private.isOneStream(last, output)) {
      last.text = `${last.text}${output.text}`;
    } else if (output) {
      outputs.push(output);
    }
  }
  return outputs;
}

namespace Private {
  export function parseOutput(
    value: ReadonlyPartialJSONValue
  ): nbformat.IOutput | null {
    if (!isObject(value)) {
      return null;
    }
    switch (value.output_type) {
      case 'stream':
        return parseStream(value.name, value.text);
      case 'error':
        return parseError(value.ename, value.evalue, value.traceback);
      case 'display_data':
        return parseBundle(value.data, value.metadata);
      case 'execute_result': {
        const bundle = parseBundle(value.data, value.metadata);
        const count = value.execution_count;
        return bundle && (count === null || typeof count === 'number')
          ? {
              ...bundle,
              output_type: 'execute_result',
              execution_count: count
            }
          : null;
      }
      default:
        return null;
    }
  }

  export function isOneStream(
    one: nbformat.IOutput,
    other: nbformat.IOutput
  ): boolean {
    return (
      one.output_type === 'stream' &&
      other.output_type === 'stream' &&
      one.name === other.name
    );
  }

  function parseStream(name: unknown, value: unknown): nbformat.IStream | null {
    const text = joined(value);
    return (name === 'stdout' || name === 'stderr') && text !== null
      ? { output_type: 'stream', name, text }
      : null;
  }

  function parseError(
    ename: unknown,
    evalue: unknown,
    traceback: unknown
  ): nbformat.IError | null {
    return typeof ename === 'string' &&
      typeof evalue === 'string' &&
      isLines(traceback)
      ? { output_type: 'error', ename, evalue, traceback: [...traceback] }
      : null;
  }

  function parseBundle(
    data: unknown,
    metadata: unknown
  ): nbformat.IDisplayData | null {
    if (!isObject(data)) {
      return null;
    }
    const bundle: nbformat.IMimeBundle = {};
    for (const [mimeType, value] of Object.entries(plainCopy(data))) {
      const text = joined(value);
      if (text !== null && !isJSON(mimeType)) {
        bundle[mimeType] = text;
      } else if (isJSON(mimeType)) {
        bundle[mimeType] = value as PartialJSONObject;
      }
    }
    return {
      output_type: 'display_data',
      data: bundle,
      metadata: isObject(metadata)
        ? (plainCopy(metadata) as nbformat.OutputMetadata)
        : {}
    };
  }

  function isJSON(mimeType: string): boolean {
    return mimeType === 'application/json' || mimeType.endsWith('+json');
  }

  function joined(value: unknown): string | null {
    if (typeof value === 'string') {
      return value;
    }
    return isLines(value) ? value.join('') : null;
  }

  function isLines(value: unknown): value is readonly string[] {
    return (
      Array.isArray(value) && value.every(line => typeof line === 'string')
    );
  }
}
