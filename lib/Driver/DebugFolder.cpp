//===- DebugFolder.cpp - what --debug-dir leaves ------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "DebugFolder.h"

#include "tc/Support/KernelPicture.h"
#include "tc/Support/OutputFile.h"
#include "tc/Support/ToolVersion.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using namespace tc;
using namespace tc::driver;

static constexpr StringRef kWeights = "weights.data", kCommand = "command.txt", kIndex = "index.html",
                           kReproducer = "reproducer.mlir";

/// Of the files with the code of a part of a variant.
static const std::pair<StringRef, StringRef> kCodeKinds[] = {
    {".opt.ll", "optimised"}, {".ll", "LLVM IR"}, {".s", "assembly"}};

static constexpr StringRef kStyle = R"(<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222; }
code { font-size: 13px; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
td, th { padding: 0.2em 1em 0.2em 0; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
td.number { text-align: right; white-space: nowrap; }
dt { font-weight: bold; }
dd { margin: 0 0 0.5em 0; }
:root { --ink: #222; --soft: #667; --line: #ddd; --paper: #fff; --kernel: #2f6fdb; }
)";

static std::string escaped(StringRef text) {
  std::string html;
  raw_string_ostream stream(html);
  printHTMLEscaped(text, stream);
  return html;
}

static std::string linkTo(StringRef file, StringRef text) {
  // Names of variants are those of machines; nothing in them needs to be encoded but by HTML.
  return "<a href=\"" + escaped(file) + "\">" + escaped(text) + "</a>";
}

static std::string sizeOf(const std::string &path) {
  uint64_t bytes = 0;
  if (sys::fs::file_size(path, bytes))
    return "";
  return bytes < 10240 ? std::to_string(bytes) + " B" : formatv("{0:f1} KiB", double(bytes) / 1024).str();
}

DebugFolder::DebugFolder(const CompileRequest &request) : request(request), weights(pathOf(kWeights)) {}

/// VARIANT.PART, of a file with code.
static bool isPart(StringRef name) {
  const auto [variant, part] = name.rsplit('.');
  if (part.empty() || !all_of(part, isAlnum))
    return false;
  SmallVector<StringRef> cpus;
  const std::string names = machine::getCpuNames();
  StringRef(names).split(cpus, ", ");
  return is_contained(cpus, variant) || machine::symbolizeTargetKind(variant);
}

bool DebugFolder::isName(StringRef name) {
  if (is_contained({kWeights, kCommand, kIndex, kReproducer}, name))
    return true;
  for (auto [suffix, kind] : kCodeKinds)
    if (StringRef part = name; part.consume_back(suffix))
      return isPart(part);
  name.consume_back(".data");
  for (unsigned i = 0; i <= unsigned(Phase::Artifact); ++i) {
    StringRef rest = name;
    if (!rest.consume_front((Twine(i) + "-" + getName(Phase(i))).str()))
      continue;
    if (rest == ".mlir" || rest == ".json")
      return true;
    return rest.consume_front("-") && rest.consume_back(".mlir") && machine::symbolizeTargetKind(rest);
  }
  return false;
}

/// A folder that --debug-dir has made or used has its command line.
static Error removeEarlier(const std::string &folder, const std::string &command) {
  if (!sys::fs::exists(command))
    return Error::success();
  std::vector<std::string> paths;
  std::error_code error;
  for (sys::fs::directory_iterator file(folder, error), end; file != end && !error; file.increment(error))
    if (DebugFolder::isName(sys::path::filename(file->path())))
      paths.push_back(file->path());
  for (const std::string &path : paths)
    if (std::error_code failed = sys::fs::remove(path))
      return createStringError(path +
                               ": error: the file is of an earlier compile and cannot be removed: " + failed.message());
  return Error::success();
}

std::string DebugFolder::pathOf(StringRef file) const {
  SmallString<128> path(request.debugDir);
  sys::path::append(path, file);
  return path.str().str();
}

Error DebugFolder::begin() {
  if (std::error_code error = sys::fs::create_directories(request.debugDir))
    return createStringError(request.debugDir + ": error: cannot make the folder: " + error.message());
  if (Error error = removeEarlier(request.debugDir, pathOf(kCommand)))
    return error;
  return writeOutputFile(pathOf(kCommand), [&](raw_ostream &stream) { stream << request.commandLine << "\n"; });
}

Error DebugFolder::writeModule(Phase phase, StringRef target, mlir::ModuleOp module, double seconds) {
  std::string file = formatv("{0}-{1}{2}{3}.mlir", unsigned(phase), getName(phase), target.empty() ? "" : "-", target);
  entries.push_back({phase, target.str(), file, seconds});
  return weights.writeModule(module, pathOf(file));
}

Error DebugFolder::writeManifest(StringRef manifest, double seconds) {
  std::string file = formatv("{0}-{1}.json", unsigned(Phase::Artifact), getName(Phase::Artifact));
  entries.push_back({Phase::Artifact, "", file, seconds});
  this->manifest = manifest.str();
  return writeOutputFile(pathOf(file), [&](raw_ostream &stream) { stream << manifest << "\n"; });
}

void DebugFolder::printPhases(raw_ostream &html) const {
  if (entries.empty()) {
    html << "<p>No phase came to its end.\n";
    return;
  }
  html << "<h2>Phases</h2>\n<table>\n<tr><th>phase<th>target<th>at its end<th>time<th>file<th>size\n";
  for (const Entry &entry : entries)
    html << "<tr><td>" << getName(entry.phase) << "<td>" << (entry.target.empty() ? "all" : escaped(entry.target))
         << "<td>" << (entry.phase == Phase::Artifact ? "the artifact's manifest" : escaped(getMeaning(entry.phase)))
         << "<td class=number>" << formatv("{0:f1} ms", 1e3 * entry.seconds) << "<td>" << linkTo(entry.file, entry.file)
         << "<td class=number>" << sizeOf(pathOf(entry.file)) << "\n";
  // Behind the phases that are the same for all machines, as people look at it most.
  const Entry *shown = &entries.front();
  for (const Entry &entry : entries)
    if (entry.phase <= Phase::Schedule)
      shown = &entry;
  std::string machines;
  auto add = [&](StringRef option, ArrayRef<std::string> values) {
    for (const std::string &value : values)
      machines += (" " + option + " " + value).str();
  };
  const StringRef target = shown->target; // empty: of all
  const bool isCuda = target == machine::stringifyTargetKind(machine::TargetKind::Cuda);
  add("--target",
      target.empty() || request.targets.empty() ? request.targets : std::vector<std::string>{shown->target});
  if (target.empty() || isCuda)
    add("--gpu", request.gpus);
  if (!isCuda)
    add("--cpu", request.cpus);
  html << "</table>\n<p>Each module can be compiled on: <code>tc-compile " << escaped(shown->file + machines)
       << " -o model.bin</code>, or shown pass by pass with <code>tc-opt</code>.\n";
  if (weights.getSize())
    html << "The constants of all of them, each once, are " << linkTo(kWeights, kWeights) << " ("
         << sizeOf(pathOf(kWeights)) << "), to which the files <code>*.mlir.data</code> are links.\n";
}

/// The kernels of the first target's first function, as the manifest has them.
void DebugFolder::printKernels(raw_ostream &html) const {
  Expected<json::Value> parsed = json::parse(manifest);
  const json::Object *object = parsed ? parsed->getAsObject() : nullptr;
  if (!parsed)
    consumeError(parsed.takeError()); // there is none
  const json::Array *all = object ? object->getArray("kernels") : nullptr;
  const json::Array *functions = object ? object->getArray("functions") : nullptr;
  if (!all || !functions || functions->empty())
    return;
  // Those of a function follow one another.
  size_t end = all->size();
  if (functions->size() > 1)
    end = size_t((*functions)[1].getAsObject()->getInteger("first_kernel").value_or(int64_t(end)));
  auto textOf = [](const json::Value *value) {
    if (!value)
      return std::string();
    if (auto number = value->getAsInteger())
      return std::to_string(*number);
    return value->getAsString().value_or("").str();
  };
  std::vector<PictureKernel> kernels;
  std::string rows;
  raw_string_ostream table(rows);
  for (size_t i = 0; i < std::min(end, all->size()); ++i) {
    const json::Object &entry = *(*all)[i].getAsObject();
    PictureKernel kernel;
    kernel.name = textOf(entry.get("name"));
    kernel.note = textOf(entry.get("strategy"));
    kernel.title = kernel.name + ": " + kernel.note + "; " + textOf(entry.get("nodes"));
    kernel.number = uint32_t(i);
    if (const json::Array *reads = entry.getArray("reads"))
      for (const json::Value &source : *reads) {
        if (auto number = source.getAsInteger())
          kernel.reads.push_back(uint32_t(*number));
        else
          kernel.inputs.push_back(textOf(&source));
      }
    table << "<tr data-row=\"" << i + 1 << "\"><td class=number>" << i + 1 << "<td>" << escaped(kernel.name) << "<td>"
          << escaped(kernel.note) << "<td class=number>" << escaped(textOf(entry.get("flops"))) << "<td class=number>"
          << escaped(textOf(entry.get("bytes"))) << "<td>" << escaped(textOf(entry.get("nodes"))) << "\n";
    kernels.push_back(std::move(kernel));
  }
  if (const json::Array *outputs = (*functions)[0].getAsObject()->getArray("outputs"))
    for (const json::Value &output : *outputs)
      if (const json::Array *from = output.getAsObject()->getArray("from"))
        for (const json::Value &source : *from)
          if (auto number = source.getAsInteger(); number && size_t(*number) < kernels.size())
            kernels[size_t(*number)].outputs.push_back(textOf(output.getAsObject()->get("name")));
  html << "<section><h2>Kernels, and what they read</h2>\n<p>Drag to move; zoom with the buttons, or with Ctrl and the "
          "wheel; a click shows the kernel's row. What each took of a run, and of what the machine could do: "
          "<code>tc-bench --html</code>.\n";
  if (const std::string picture = drawKernels(kernels); !picture.empty())
    html << "<div class=frame>" << picture << "</div>\n";
  html << "<table>\n<tr><th>number<th>kernel<th>schedule<th>operations<th>bytes<th>nodes\n"
       << rows << "</table></section>\n";
}

/// Functions that an LLVM module defines and that are kernels: their names begin with k and a number.
static std::string findKernels(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  std::vector<std::string> names;
  if (buffer)
    for (line_iterator line(**buffer); !line.is_at_end(); ++line) {
      StringRef text = *line;
      if (!text.consume_front("define "))
        continue;
      StringRef name = text.split('@').second.take_until([](char c) { return c == '('; });
      if (name.size() > 1 && name[0] == 'k' && isDigit(name[1]))
        names.push_back(name.str());
    }
  return join(names, ", ");
}

void DebugFolder::printCode(raw_ostream &html) const {
  // Per variant and part, the file of each kind.
  std::map<std::string, std::map<std::string, std::string>> parts;
  std::error_code error;
  for (sys::fs::directory_iterator file(request.debugDir, error), end; file != end && !error; file.increment(error)) {
    const StringRef name = sys::path::filename(file->path());
    for (auto [suffix, kind] : kCodeKinds)
      if (StringRef part = name; part.consume_back(suffix) && isPart(part)) {
        parts[part.str()][kind.str()] = name.str();
        break;
      }
  }
  if (parts.empty())
    return;
  html << "<h2>Machine code</h2>\n<table>\n<tr><th>variant and part<th>LLVM IR<th>optimised<th>assembly<th>kernels\n";
  for (const auto &[part, files] : parts) {
    html << "<tr><td>" << escaped(part);
    for (StringRef kind : {"LLVM IR", "optimised", "assembly"}) {
      html << "<td>";
      if (auto found = files.find(kind.str()); found != files.end())
        html << linkTo(found->second, sizeOf(pathOf(found->second)));
    }
    auto optimised = files.find("optimised");
    html << "<td><code>" << (optimised == files.end() ? "" : escaped(findKernels(pathOf(optimised->second))))
         << "</code>\n";
  }
  html << "</table>\n";
}

Error DebugFolder::writeIndex(StringRef result) {
  return writeOutputFile(pathOf(kIndex), [&](raw_ostream &html) {
    const std::string model = escaped(sys::path::filename(request.model));
    html << "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" << model
         << ": tc-compile</title>\n"
         << kStyle << kKernelPictureStyle << "</style>\n<h1>" << model << "</h1>\n<dl>\n<dt>command<dd><code>"
         << escaped(request.commandLine) << "</code> (" << linkTo(kCommand, kCommand) << ")\n<dt>compiler<dd>"
         << escaped(getVersionText("tc-compile")) << "\n<dt>result<dd>" << escaped(result) << "\n</dl>\n";
    printPhases(html);
    printKernels(html);
    printCode(html);
    if (sys::fs::exists(pathOf(kReproducer)))
      html << "<h2>Reproducer</h2>\n<p>The module before the phase that failed: " << linkTo(kReproducer, kReproducer)
           << "\n";
    html << kKernelPictureScript << "</html>\n";
  });
}
