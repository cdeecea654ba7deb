/** T with properties that callers may set to undefined, also under exactOptionalPropertyTypes. */
export type Optional<T> = { [K in keyof T]?: T[K] | undefined };
