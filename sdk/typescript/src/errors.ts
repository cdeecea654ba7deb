import type { Import } from "./types.js";

/** The base class of all errors of this package. */
export class MnemoError extends Error {
  override name = this.constructor.name;
}

/** The server could not be reached, or the connection broke. */
export class APIConnectionError extends MnemoError {}

/** The server did not respond in time. */
export class APITimeoutError extends APIConnectionError {}

/** An import ended with the status failed. */
export class ImportFailedError extends MnemoError {}

/** Returns the error of a failed import. */
export function failureOf(status: Import): ImportFailedError {
  return new ImportFailedError(`import ${status.importId} failed: ${status.errors[0]?.error ?? "no reason was given"}`);
}

interface ErrorBody {
  error?: unknown;
  code?: unknown;
  rejectedIds?: string[];
}

/** An error response of the server. */
export class APIError extends MnemoError {
  /** A stable name of the error, such as `quota_exceeded`. Empty if a proxy responded. */
  readonly code: string;
  /** The ids that a bulk update rejected. */
  readonly rejectedIds: string[];

  constructor(
    readonly status: number,
    body: ErrorBody,
    /** The id under which the server logged the request. */
    readonly requestId: string | undefined,
    /** Seconds to wait before the next attempt, if the server said so. */
    readonly retryAfter: number | undefined,
  ) {
    super(typeof body.error === "string" ? body.error : `the server responded with status ${status}`);
    this.code = typeof body.code === "string" ? body.code : "";
    this.rejectedIds = body.rejectedIds ?? [];
  }
}

/** 400: the input is invalid. */
export class BadRequestError extends APIError {}
/** 401: the API key is missing, unknown or revoked. */
export class AuthenticationError extends APIError {}
/** 403: the tenant is suspended, or the key may not do this. */
export class PermissionDeniedError extends APIError {}
/** 403 with code `quota_exceeded`. */
export class QuotaExceededError extends PermissionDeniedError {}
/** 404: something that the request names does not exist. */
export class NotFoundError extends APIError {}
/** 409: the name is already used, or the idempotency key was used for another request. */
export class ConflictError extends APIError {}
/** 413: the body is too large. */
export class TooLargeError extends APIError {}
/** 429: the request rate is exceeded. */
export class RateLimitError extends APIError {}
/** 503: a dependency of the server is unavailable. */
export class UnavailableError extends APIError {}

const byStatus: Record<number, typeof APIError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: TooLargeError,
  429: RateLimitError,
  503: UnavailableError,
};

/** Returns the error of a response with a body. */
export function errorOf(response: Response, text: string): APIError {
  let body: ErrorBody = {};
  try {
    body = (JSON.parse(text) as ErrorBody | null) ?? {};
  } catch {
    // A proxy responded.
  }
  const kind = body.code === "quota_exceeded" ? QuotaExceededError : (byStatus[response.status] ?? APIError);
  return new kind(response.status, body, response.headers.get("X-Request-Id") ?? undefined, retryAfter(response));
}

/** Returns the seconds of Retry-After. */
export function retryAfter(response: Response): number | undefined {
  const value = response.headers.get("Retry-After");
  return value !== null && /^\d+(\.\d+)?$/.test(value) ? Number(value) : undefined;
}
