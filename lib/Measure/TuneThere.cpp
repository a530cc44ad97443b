//===- TuneThere.cpp - measure the schedules of a file, where there is no compiler --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/TuneThere.h"

#include "tc/Measure/Database.h"

using namespace tc::measure;

namespace {

/// Of the chips the one whose code the GPU runs, as the runtime chooses among cubins; null: none.
const TuneVariant *findChip(const TuneKernel &kernel, const Machine &gpu) {
  const TuneVariant *best = nullptr;
  for (const TuneVariant &chip : kernel.variants)
    if (runsOn(gpu.gpuVersion, chip.arch) && (!best || best->arch < chip.arch))
      best = &chip;
  return best;
}

class Tuner {
public:
  Tuner(const TuneFile &file, const TuneThereOptions &options) : file(file), options(options) {}

  std::string run() {
    std::string error;
    std::optional<Database> read = Database::read(options.database, /*mayLack=*/true, error);
    if (!read)
      return error;
    database = std::move(*read);
    // What cannot be written is found out before anything is measured.
    for (const std::optional<Machine> *machine : {&options.cpu, &options.gpu})
      if (*machine)
        if (error = Database::addToFile(options.database, **machine, std::nullopt); !error.empty())
          return error;
    const std::vector<TuneKernel> &kernels = file.getIndex().kernels;
    for (size_t number = 0; number < kernels.size(); ++number) {
      const TuneKernel &kernel = kernels[number];
      const std::optional<Machine> &machine = kernel.onGpu ? options.gpu : options.cpu;
      if (!machine)
        continue;
      TuneResult result;
      result.machine = machine->name;
      if (!lookup(kernel, result)) {
        if (options.begin)
          options.begin(number);
        error = measure(kernel, *machine, result);
      }
      if (!error.empty())
        return error;
      if (options.end)
        options.end(number, result);
    }
    return "";
  }

private:
  /// Whether there is a record that a compile with the same candidates would take.
  bool lookup(const TuneKernel &kernel, TuneResult &result) const {
    for (const TuneVariant &variant : kernel.variants) {
      const Record *record = database.find(kernel.key, result.machine, variant.name);
      if (!record || record->generators != file.getIndex().generators)
        continue;
      for (size_t i = 0; i < variant.schedules.size(); ++i) {
        const TuneSchedule &schedule = kernel.schedules[variant.schedules[i]];
        if (schedule.text != record->schedule)
          continue;
        result.state = TuneResult::State::Recorded;
        result.text = describeRecord(record->us, record->defaultUs, variant.name, i ? schedule.change : "");
        result.variant = variant.name;
        result.schedule = schedule.text;
        result.us = record->us;
        result.defaultUs = record->defaultUs;
        return true;
      }
    }
    return false;
  }

  /// The error is about the database; what else goes wrong is the kernel's result.
  std::string measure(const TuneKernel &kernel, const Machine &machine, TuneResult &result) {
    auto leave = [&](const std::string &why) {
      result.text = "not tuned: " + why;
      return std::string();
    };
    if (!lost.empty())
      return leave(lost);
    Tensors tensors;
    if (!kernel.makeTensors(tensors))
      return leave("this machine has too little memory for its tensors");
    RunnerOptions how;
    how.weightBytes = kernel.weightBytes;
    how.onGpu = kernel.onGpu;
    how.isKept = true;
    if (how.onGpu)
      how.gpuCacheBytes = uint64_t(machine.cacheBytes.front());
    else
      how.threads = machine.threads;
    const TuneVariant *variant = kernel.onGpu ? findChip(kernel, machine) : nullptr;
    if (kernel.onGpu && !variant)
      return leave("the file has no code for " + machine.model + "; write it with --gpu " + machine.cpu);
    std::string error;
    std::optional<Runner> first = Runner::open(file.getArtifact(kernel), how, tensors, error);
    if (!first)
      return leave(error);
    if (!kernel.onGpu)
      variant = kernel.findVariant(first->getVariant());
    if (!variant)
      return leave("the file has no candidates for " + first->getVariant() + ", which this machine takes");
    Contest contest;
    contest.count = variant->schedules.size();
    contest.open = [&](size_t candidate, std::string &why) {
      return Runner::openFunction(*first, variant->schedules[candidate], tensors, why);
    };
    const Choice choice = choose(*first, tensors, contest);
    if (!choice.failure.empty()) {
      lost = describeLoss(choice.failure, kernel.onGpu);
      return leave(lost);
    }
    const TuneSchedule &best = kernel.schedules[variant->schedules[choice.best]];
    const std::string where =
        kernel.onGpu ? variant->name : variant->name + ", " + std::to_string(machine.threads) + " threads";
    result.state = TuneResult::State::Measured;
    result.text = describeChoice(choice, contest.count, where, best.change) + (choice.defaultUs ? kernel.sizes : "");
    result.variant = variant->name;
    result.schedule = best.text;
    result.us = choice.us;
    result.defaultUs = choice.defaultUs;
    Record record;
    record.kernel = kernel.key;
    record.machine = machine.name;
    record.variant = variant->name;
    record.what = kernel.what;
    record.schedule = best.text;
    record.defaultSchedule = kernel.schedules.front().text;
    record.us = choice.us;
    record.defaultUs = choice.defaultUs;
    record.generators = file.getIndex().generators;
    return Database::addToFile(options.database, machine, std::move(record));
  }

  const TuneFile &file;
  const TuneThereOptions &options;
  Database database;
  std::string lost; ///< why nothing runs any more in this process; empty: it does
};

} // namespace

std::string tc::measure::tuneThere(const TuneFile &file, const TuneThereOptions &options) {
  return Tuner(file, options).run();
}
