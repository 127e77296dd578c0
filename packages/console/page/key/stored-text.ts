/** In JSON, bytes that are text are text, and all others base64. */
export type ShownBytes = { readonly text: string } | { readonly base64: string }

/** Bytes as they are stored: as text, or in hexadecimal. Never parsed and written again. */
export function storedText(shown: ShownBytes): string {
  if ('text' in shown) return shown.text
  return Array.from(atob(shown.base64), byte => byte.charCodeAt(0).toString(16).padStart(2, '0')).join(' ')
}
