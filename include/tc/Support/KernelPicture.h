//===- KernelPicture.h - the kernels of a model as a picture --------------------------------------------*- C++ -*-===//
//
// An SVG graph of kernels with what they read, for pages without outside references: tc-bench's, and that of
// tc-compile's debug folder. C++ alone, for tools without LLVM, too. On a page:
//
//   <style> ... kKernelPictureStyle </style> <section> <div class=frame> drawKernels(...) </div>
//   <table> <tr data-row="1"> ... </table> </section> kKernelPictureScript
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_KERNELPICTURE_H
#define TC_SUPPORT_KERNELPICTURE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tc {

struct PictureKernel {
  std::string name, note, title;            ///< note: a short second line; title: what a pointer at rest shows
  double heat = 0;                          ///< from 0 to 1, the strength of the colour
  uint32_t number = 0;                      ///< by which others read it
  std::vector<uint32_t> reads;              ///< numbers of kernels; those that are not there made nothing
  std::vector<std::string> inputs, outputs; ///< of the model: those that it reads, and those that come from it
};

/// Empty where nothing says what they read. Boxes are numbered from 1 in the order of `kernels`.
std::string drawKernels(const std::vector<PictureKernel> &kernels);

/// Rules for style elements: of the frame, its buttons and the rows that are found.
extern const char *const kKernelPictureStyle;
/// A script element, behind all frames. Zoom: buttons, double click, Ctrl and wheel; dragging moves; a click on a
/// kernel shows its row.
extern const char *const kKernelPictureScript;

/// For &, <, > and quotes.
std::string escapeHtml(const std::string &text);

} // namespace tc

#endif // TC_SUPPORT_KERNELPICTURE_H
