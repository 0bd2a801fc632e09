// Formulas, which Sphinx leaves as TeX between \( \) or \[ \], are set by KaTeX on pages that load it.
'use strict';
addEventListener('DOMContentLoaded', () => {
  for (const element of document.querySelectorAll('.math')) {
    const text = element.textContent.trim();
    katex.render(text.slice(2, -2), element, {displayMode: text.startsWith('\\['), throwOnError: false});
  }
});
