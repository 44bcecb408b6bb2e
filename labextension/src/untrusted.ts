import type {
  ReadonlyPartialJSONObject,
  ReadonlyPartialJSONValue
} from '@lumino/coreutils';

/** Whether `value` is an object of JSON, and no list. */
export function isObject(value: unknown): value is ReadonlyPartialJSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether `value` can be an id: a text with something in it. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Whether `value` counts something: a whole number, not below zero. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * Return a copy of `value` without any key `__proto__`.
 *
 * JupyterLab copies what it keeps by assignment, and there such a key changes what the copy
 * inherits, which later copies take for keys of its own.
 */
export function plainCopy<T extends ReadonlyPartialJSONValue>(value: T): T;
export function plainCopy(
  value: ReadonlyPartialJSONValue | undefined
): ReadonlyPartialJSONValue | undefined {
  if (Array.isArray(value)) {
    return value.map(item => plainCopy(item));
  }
  if (!isObject(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== '__proto__')
      .map(([key, item]) => [key, plainCopy(item ?? null)])
  );
}
